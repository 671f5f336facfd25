"""Prometheus metrics of a Workflow, which Argo's controller emits under `argo_workflows_`: pods patch nothing.

Labels are kind, verdict and status alone: a label that holds commits or branches would grow for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from hera.workflows import models as m

VERDICTS = "foxrun_verdicts_total"
DRIFTED = "foxrun_last_pair_drifted"
DURATION = "foxrun_duration_seconds"
_BUCKETS_S = (60, 300, 900, 3600, 14_400, 43_200, 86_400, 172_800)
_VERDICT = "{{outputs.parameters.verdict}}"


def of_workflow(kind: str) -> m.Metrics:
    """How long workflows take, by kind and by how Argo says that they ended."""
    labels = _labels(kind=kind, status="{{workflow.status}}")
    histogram = m.Histogram(buckets=[m.Amount(float(s)) for s in _BUCKETS_S], value="{{workflow.duration}}")
    text = "Seconds from a workflow's start to its end"
    return m.Metrics(prometheus=[m.Prometheus(name=DURATION, help=text, labels=labels, histogram=histogram)])


def of_templates(templates: Sequence[m.Template], kind: str) -> None:
    """Give the templates that judge their metrics: compare says a pair's verdict, a gate that failed ends the rest."""
    for template in templates:
        if template.name == "compare":
            drifted = [_drifted(kind, f"{_VERDICT} == drift", 1), _drifted(kind, f"{_VERDICT} != drift", 0)]
            template.metrics = m.Metrics(prometheus=[_verdicts(kind), *drifted])
        elif template.name == "gate":
            template.metrics = m.Metrics(prometheus=[_verdicts(kind, when="{{status}} != Succeeded")])


def _verdicts(kind: str, when: str | None = None) -> m.Prometheus:
    return m.Prometheus(
        name=VERDICTS,
        help="Verdicts by kind of workflow; unknown: killed before it could say one",
        labels=_labels(kind=kind, verdict=_VERDICT),
        when=when,
        counter=m.Counter(value="1"),
    )


def _drifted(kind: str, when: str, value: int) -> m.Prometheus:
    return m.Prometheus(
        name=DRIFTED,
        help="1 when the last pair that was compared drifted, else 0",
        labels=_labels(kind=kind),
        when=when,
        gauge=m.Gauge(realtime=False, value=str(value)),
    )


def _labels(**values: str) -> list[m.MetricLabel]:
    return [m.MetricLabel(key=key, value=value) for key, value in values.items()]
