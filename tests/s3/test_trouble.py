"""What people are told when S3 does not do what they want; never a secret, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import InfrastructureError
from orchestrator.places import Places
from orchestrator.settings import load_settings
from orchestrator.stores.s3 import S3Store
from tests.s3.servers import ACCESS, BUCKET, SECRET, Gateway, answering, environment, free_port


def trouble(**how: object) -> str:
    """What a listing ends in: message -> remedy."""
    bucket = str(how.pop("bucket", BUCKET))
    with pytest.raises(InfrastructureError) as caught:
        S3Store(bucket, delays=(), **how).source("runs/a").list()  # type: ignore[arg-type]
    assert caught.value.exit_code == 6
    return f"{caught.value} -> {caught.value.remedy}"


def document(code: str, message: str = "said by the server", more: str = "") -> bytes:
    """An error as AWS documents it."""
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


CREDENTIALS = "check the profile (AWS_PROFILE) or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; in a cluster the Secret"


def test_a_wrong_secret_key(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    assert trouble(endpoint=gateway.endpoint) == (
        "s3://bucket/runs/a (SignatureDoesNotMatch): the server computes another signature: the secret key does not "
        "belong to the access key, or something between changes the request -> "
        f"{CREDENTIALS}; also that a proxy before {gateway.endpoint[7:]} keeps the Host header"
    )


def test_an_unknown_access_key(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    text = trouble(endpoint=gateway.endpoint)
    assert text.endswith(f"): the server does not know the access key -> {CREDENTIALS}")


def test_no_credentials_at_all(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert trouble(endpoint=gateway.endpoint) == f"s3://bucket/runs/a: there are no credentials -> {CREDENTIALS}"


def test_a_profile_that_does_not_exist(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert trouble(endpoint=gateway.endpoint) == (
        "s3://bucket: AWS_PROFILE names a profile that ~/.aws does not have -> aws configure list-profiles"
    )


def test_a_bucket_that_does_not_exist(gateway: Gateway) -> None:
    assert trouble(endpoint=gateway.endpoint, bucket="nowhere") == (
        "s3://nowhere/runs/a (NoSuchBucket): there is no bucket nowhere -> "
        "check s3_bucket and s3_endpoint, or make the bucket"
    )


def test_https_spoken_to_an_http_port(gateway: Gateway) -> None:
    host = gateway.endpoint[7:]
    assert trouble(endpoint=f"https://{host}") == (
        f"s3://bucket/runs/a: {host} speaks no TLS -> set s3_endpoint to http://{host}"
    )


def test_http_spoken_to_an_https_port(own_credentials: None) -> None:
    with answering(400, b"Client sent an HTTP request to an HTTPS server.\n") as endpoint:
        text = trouble(endpoint=endpoint)
    assert text.endswith(f"-> if it speaks TLS, set s3_endpoint to https://{endpoint[7:]}")


def test_a_refused_connection(own_credentials: None) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    assert trouble(endpoint=endpoint) == (
        f"s3://bucket/runs/a: {endpoint[7:]} refuses the connection; 1 try -> "
        f"start the server, or check s3_endpoint ({endpoint})"
    )


def test_the_bucket_in_a_host_name_that_nobody_knows(own_credentials: None) -> None:
    assert trouble(endpoint="http://store.invalid:9000", addressing="virtual") == (
        "s3://bucket/runs/a: the name bucket.store.invalid:9000 cannot be resolved -> "
        "set s3_addressing: path, or let DNS know *.store.invalid:9000"
    )
    # auto asks any server but AWS's by path, so the name is the server's own
    assert "the name store.invalid:9000 cannot be resolved" in trouble(endpoint="http://store.invalid:9000")


def test_the_signature_for_another_region_is_corrected(tmp_path: Path, own_credentials: None) -> None:
    made = Gateway(tmp_path / "s3", region="eu-central-1")
    try:
        store = S3Store(BUCKET, endpoint=made.endpoint, delays=())  # no region is set anywhere
        store.write("k", b"v")
        assert store.read("k") == b"v"
    finally:
        made.stop()


ANSWERS: list[tuple[int, str, str, dict[str, str], str]] = [
    (
        301,
        "PermanentRedirect",
        "<Endpoint>bucket.s3.eu-west-1.amazonaws.com</Endpoint>",
        {"x-amz-bucket-region": "eu-west-1"},
        "(PermanentRedirect): the bucket bucket is in another region than us-east-1 -> set s3_region to the "
        "bucket's region (eu-west-1), and s3_endpoint to that region's or to nothing",
    ),
    (
        400,
        "AuthorizationHeaderMalformed",
        "<Region>eu-central-1</Region>",
        {},
        "(AuthorizationHeaderMalformed): the server expects another region than us-east-1 in the signature -> "
        "set s3_region (eu-central-1)",
    ),
    (
        403,
        "InvalidAccessKeyId",
        "",
        {},
        f"(InvalidAccessKeyId): the server does not know the access key -> {CREDENTIALS}",
    ),
    (
        403,
        "AccessDenied",
        "",
        {},
        "(AccessDenied): access denied -> let the credentials list, read and write the bucket bucket "
        "(s3:ListBucket, s3:GetObject, s3:PutObject), or use others: AWS_PROFILE, AWS_ACCESS_KEY_ID",
    ),
    (
        403,
        "SecondLevelDomainForbidden",
        "",
        {},
        "(SecondLevelDomainForbidden): the server wants the bucket in the host name -> set s3_addressing: virtual",
    ),
    (
        403,
        "RequestTimeTooSkewed",
        "",
        {},
        "(RequestTimeTooSkewed): this machine's clock is not the server's -> set the clock (chronyc makestep)",
    ),
    (
        400,
        "ExpiredToken",
        "",
        {},
        "(ExpiredToken): the session token has expired -> get a new one: aws sso login, or renew AWS_SESSION_TOKEN",
    ),
    (
        503,
        "SlowDown",
        "",
        {},
        "{host} answers SlowDown: it is overloaded or out of order; 1 try -> try again later, or see the server's log",
    ),
    (418, "SomethingNew", "", {}, "{host} refuses: SomethingNew -> see the server's log"),
]


# What servers answer that cannot be had here: AWS itself, and stores that insist on virtual addressing.
@pytest.mark.parametrize(("status", "code", "more", "headers", "expected"), ANSWERS)
def test_an_answer_that_says_no(
    status: int, code: str, more: str, headers: dict[str, str], expected: str, own_credentials: None
) -> None:
    with answering(status, document(code, more=more), headers) as endpoint:
        text = trouble(endpoint=endpoint)
    assert text.startswith("s3://bucket/runs/a")
    assert text.removeprefix("s3://bucket/runs/a").lstrip(": ") == expected.format(host=endpoint[7:])


def test_what_is_no_s3_server_is_called_so(own_credentials: None) -> None:
    with answering(200, b"<html><body>Welcome to nginx</body>") as endpoint:
        text = trouble(endpoint=endpoint)
    assert text.endswith(f"if {endpoint[7:]} is no S3 server, set s3_endpoint to one")


@pytest.mark.parametrize(
    "value", ["localhost:9000", "http://", "http://u:hidden-password@host", "ftp://x", "http://h/path"]
)
def test_an_endpoint_that_is_no_server_is_refused_and_not_repeated(value: str, tmp_path: Path) -> None:
    from orchestrator.errors import UsageError

    with pytest.raises(UsageError, match="FOXRUN_S3_ENDPOINT: s3_endpoint cannot be the value") as caught:
        load_settings(tmp_path, {"FOXRUN_S3_ENDPOINT": value})
    assert "hidden" not in f"{caught.value}{caught.value.remedy}"


def test_settings_reach_the_store(tmp_path: Path) -> None:
    (tmp_path / "foxrun.yaml").write_text("s3_bucket: inputs-here\ns3_region: eu-west-3\ns3_addressing: virtual\n")
    settings = load_settings(tmp_path, {"FOXRUN_S3_ENDPOINT": "https://store.example/"})
    environ = {"AWS_REGION": "eu-north-1"}
    client = Places(settings, environ=environ).store().client
    assert (client.meta.endpoint_url, client.meta.region_name) == ("https://store.example", "eu-west-3")
    assert client.meta.config.s3["addressing_style"] == "virtual"
    assert Places(environ=environ).store("other").client.meta.region_name == "eu-north-1"
    assert Places(environ=environ).store("other").client.meta.config.s3["addressing_style"] == "virtual"  # AWS itself


def test_another_server_by_aws_own_variable_is_asked_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store.example:9000")
    client = S3Store("b", region="us-east-1").client
    assert client.meta.endpoint_url == "http://store.example:9000"
    assert client.meta.config.s3["addressing_style"] == "path"


def test_no_secret_is_ever_printed_or_written(tmp_path: Path) -> None:
    token = "session-token-never-to-be-seen"
    leak = f"x-amz-security-token:{token} {SECRET}"
    for status, code in ((403, "SignatureDoesNotMatch"), (400, "Odd")):
        body = document(code, message=leak, more=f"<CanonicalRequest>{leak}</CanonicalRequest>")
        with answering(status, body) as endpoint:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "orchestrator", "compare", "s3://bucket/a", "s3://bucket/b",
                 "--report", "report.html", "--verdict", "verdict.json"],
                cwd=tmp_path, capture_output=True, text=True,
                env=environment(
                    AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN=token,
                    FOXRUN_S3_ENDPOINT=endpoint, FOXRUN_HOME=str(tmp_path / "home"), FOXRUN_DEBUG="1",
                ),
            )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == 6 and said.startswith("error: s3://bucket/a") and "Traceback" not in said
        written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(secret in text for secret in (token, SECRET) for text in (said, *written))
    assert os.environ.get("AWS_SESSION_TOKEN") != token
