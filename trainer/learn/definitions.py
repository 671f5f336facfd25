"""What every leaf, metric and key of the summary means; docs/trainer.md is generated from these."""

from __future__ import annotations

from trainer.exact.tape import LeafSpec
from trainer.model.parameters import Layout

LEAVES = {
    "step": "number of the step, counted from 0 on through evaluation",
    "rng_counters": "key of each purpose's draws at this step, in the order of `Purpose`",
    "action_rng": "keys of the three draws that choose actions: Gumbel noise, whether at random, which",
    "data_chunk": "chunk of the book that lies on the device",
    "env_cursor": "row of the chunk that each environment stands on (the data cursor)",
    "env_position": "units held, negative when short",
    "env_pyramid_units": "units stacked in the position: the absolute value of `env_position`",
    "env_entry_step": "step at which the position was opened from flat; -1 when flat",
    "env_entry_px": "average price of the units held; 0 when flat",
    "env_entry_fees": "fees paid for the units held, USD",
    "env_cash": "money received less money paid since the start, USD",
    "env_equity_peak": "highest equity so far, at least 0, USD",
    "env_drawdown": "largest fall of the equity below its peak so far, USD",
    "env_realised": "gains of closed units net of fees, USD",
    "env_order_side": "resting order: 1 buys, -1 sells, 0 none",
    "env_order_px": "price of the resting order; 0 without one",
    "env_queue_ahead": "size that must trade before the resting order's turn",
    "env_queue_traded": "size traded at its price that the displayed size does not show as gone yet",
    "env_order_age": "rows since the resting order was posted",
    "env_pending_action": "actions on their way to the market, 3 bits each, the newest lowest",
    "env_trades": "executions so far that closed at least a unit",
    "env_wins": "those of them with a gain net of fees",
    "env_fees": "fees paid so far, USD",
    "cfc_h_state": "state of the CfC cell of each environment, before the step",
    "win_rate_ema": "controller: average over steps of the share of closing trades that won",
    "replay_max_priority": "highest priority ever given: what a new transition gets",
    "replay_tree": "inner nodes of the sum tree; element 1 is the root, element 0 stays 0",
    "replay_priorities": "priority of each transition in the replay; 0 where none is stored",
    "adam_m_sum": "sum of all first moments, float64",
    "adam_v_sum": "sum of all second moments, float64",
    "act_features": "rows of the book that each environment sees, docs/market.md",
    "act_agent": "scalars of the environments' own, docs/market.md",
    "act_action": "action taken, an index into `ACTIONS`",
    "reward": "reward of the step, docs/market.md",
    "act_done": "whether the episode ended in the step",
    "act_pnl": "change of equity over the step, USD",
    "act_equity": "equity at the end of the step, USD",
    "act_filled": "units bought less units sold in the step",
    "replay_sample_indices": "transitions drawn for the batch, as indices into the replay",
    "replay_weights": "importance weights (n p)^-beta over their largest",
    "batch_features": "rows of the book of both windows, that of the state and that of the next one",
    "batch_agent": "scalars of the agent's own in the state",
    "batch_next_agent": "the same in the next state",
    "batch_h": "CfC state that was carried into the state",
    "batch_next_h": "CfC state that was carried into the next state",
    "batch_action": "action that was taken",
    "batch_reward": "reward that it earned",
    "batch_done": "1 where the episode ended, else 0",
    "next_q_logits": "online network's return distribution in the next state, logits",
    "target_next_q_logits": "target network's return distribution in the next state, logits",
    "target_distribution": "return distribution to learn: reward plus discounted next one, projected on the atoms",
    "vsn_out": "output of variable selection",
    "mamba2_l1_out": "output of Mamba-2 block 1, with its residual",
    "ln_a_out": "output of layer norm a",
    "mamba2_l2_out": "output of Mamba-2 block 2, with its residual",
    "ln_b_out": "output of layer norm b",
    "attn_context": "window pooled by attention",
    "encoder_output": "new state of the CfC cell, which the heads read",
    "q_logits": "return distribution of each action over 51 atoms, logits",
    "pi_logits": "policy, logits",
    "v_value": "value of the state",
    "q_loss": "cross entropy of the chosen action's distribution against the target, per sample",
    "pi_loss": "advantage-weighted negative log likelihood of the action, per sample",
    "v_loss": "half the squared error of the value, per sample",
    "loss": "weighted mean over the batch of all losses less the entropy bonus",
    "q_grad": "gradient of the loss in `q_logits`",
    "pi_grad": "gradient of the loss in `pi_logits`",
    "v_grad": "gradient of the loss in `v_value`",
    "encoder_grad": "gradient of the loss in `encoder_output`",
    "grad_norm": "Euclidean norm of the whole gradient before clipping",
    "replay_new_priorities": "priorities given to the batch's transitions",
}

# By what follows the component's name.
PARAMETERS = {
    "vsn_grn_w_in": "gated residual network of the selection weights: first layer",
    "vsn_grn_b_in": "its bias",
    "vsn_grn_w_skip": "its skip connection",
    "vsn_grn_w_gate": "its gated linear unit: values, then gates",
    "vsn_grn_b_gate": "bias of that",
    "vsn_grn_norm_w": "scale of its layer norm",
    "vsn_grn_norm_b": "shift of its layer norm",
    "vsn_w": "linear embedding of each variable",
    "vsn_b": "bias of each variable's embedding",
    "mamba2_w_in": "input projection: gate, then values",
    "mamba2_w_a": "projection to the time step of each head",
    "mamba2_w_b": "projection to B, how the state takes input in",
    "mamba2_w_c": "projection to C, how the state is read",
    "mamba2_conv_w": "depthwise causal convolution; the last tap is the row itself",
    "mamba2_conv_b": "its bias",
    "mamba2_dt_bias": "bias of the time step, before softplus",
    "mamba2_a_log": "logarithm of each head's decay rate",
    "mamba2_d": "direct path of each head",
    "mamba2_norm_w": "scale of the gated RMS norm",
    "mamba2_w_out": "output projection",
    "ln_a_w": "scale of layer norm a",
    "ln_a_b": "shift of layer norm a",
    "ln_b_w": "scale of layer norm b",
    "ln_b_b": "shift of layer norm b",
    "attn_q": "learned query of the pooling",
    "cfc_w_in": "backbone of the cell: from context and the agent's scalars",
    "cfc_w_rec": "backbone of the cell: from its own state",
    "cfc_b": "bias of the backbone",
    "cfc_w_g": "branch g of the cell: where it starts from",
    "cfc_b_g": "its bias",
    "cfc_w_h": "branch h of the cell: where it tends to",
    "cfc_b_h": "its bias",
    "cfc_w_time": "time gate between the branches",
    "cfc_b_time": "its bias",
    "q_w_hidden": "hidden layer of the distributional Q head",
    "q_b_hidden": "its bias",
    "q_w_out": "output layer of the distributional Q head",
    "q_b_out": "its bias",
    "pi_w_hidden": "hidden layer of the policy head",
    "pi_b_hidden": "its bias",
    "pi_w_out": "output layer of the policy head",
    "pi_b_out": "its bias",
    "v_w_hidden": "hidden layer of the value head",
    "v_b_hidden": "its bias",
    "v_w_out": "output layer of the value head",
    "v_b_out": "its bias",
}

METRICS = {
    "loss": "the leaf `loss`",
    "q_loss": "mean of the leaf `q_loss`",
    "pi_loss": "mean of the leaf `pi_loss`",
    "v_loss": "mean of the leaf `v_loss`",
    "entropy": "mean entropy of the policy over the environments, nats",
    "batch_entropy": "mean entropy of the policy over the batch, nats",
    "grad_norm": "the leaf `grad_norm`",
    "target_value_mean": "mean over the batch of the target distribution's mean",
    "v_value_mean": "mean of the leaf `v_value`",
    "priority_mean": "mean of the leaf `replay_new_priorities`",
    "reward_mean": "mean reward over the environments",
    "pnl_usd": "change of equity in the step, all environments together, USD",
    "equity_usd": "equity at the end of the step, all environments together, USD",
    "drawdown_usd": "largest drawdown so far of any environment, USD",
    "trades": "closing executions so far, all environments together",
    "win_rate_ema": "the controller `win_rate_ema` after the step",
}

SUMMARY = {
    "total_pnl_usd": "change of equity over evaluation, all environments together, USD",
    "max_drawdown_usd": "largest fall of that total below its own peak, USD",
    "max_env_drawdown_usd": "largest drawdown of any one environment, USD",
    "win_rate": "share of closing executions with a gain net of fees; 0 without any",
    "trades": "closing executions, all environments together",
    "entropy": "mean entropy of the policy, nats",
    "sharpe": "mean over standard deviation of the total's change in a step, not annualised; 0 without deviation",
    "fees_usd": "fees paid, all environments together, USD",
    "eval_steps": "steps of evaluation",
    "environments": "environments side by side",
}

_TAKEN = {
    "env": "every row",
    "parameters": "every row",
    "learner": "training, last",
    "act": "training, evaluation",
    "learn": "training",
}


def meaning(name: str, layout: Layout) -> str:
    """What the leaf ``name`` holds; KeyError where nobody said."""
    if name in LEAVES:
        return LEAVES[name]
    if name.startswith("act_"):
        return f"{LEAVES[name.removeprefix('act_')]}; of acting"
    for p in layout.parameters:
        of_parameter = _parameter_meaning(p.name)
        for prefix, text in (
            (p.name, of_parameter),
            (p.gradient_name, f"gradient of `{p.name}`, before clipping"),
            (f"target_{p.name}", f"target network's average of `{p.name}`"),
            (f"adam_m_{p.name}", f"first moment of `{p.name}`"),
            (f"adam_v_{p.name}", f"second moment of `{p.name}`"),
        ):
            if name == prefix:
                return text
    raise KeyError(name)


def _parameter_meaning(name: str) -> str:
    for layer in ("l1", "l2"):
        if name.startswith(f"mamba2_{layer}_"):
            return f"{PARAMETERS['mamba2_' + name.removeprefix(f'mamba2_{layer}_')]}, block {layer[1]}"
    return PARAMETERS[name]


def leaf_table(leaves: list[LeafSpec], layout: Layout) -> str:
    """Markdown: every leaf in dataflow order. Shapes are those of the given leaves."""
    lines = ["| leaf | component | kind | type | shape | in rows of | meaning |", "|---|---|---|---|---|---|---|"]
    for leaf in leaves:
        shape = " x ".join(map(str, leaf.shape)) or "scalar"
        dtype = str(leaf.dtype).removeprefix("torch.")
        mark = " +" if leaf.checksum else ""
        lines.append(
            f"| `{leaf.name}`{mark} | {leaf.component} | {leaf.kind} | {dtype} | {shape} | {_TAKEN[leaf.group]} | "
            f"{meaning(leaf.name, layout)} |"
        )
    return "\n".join(lines)


def key_table(heading: str, keys: dict[str, str]) -> str:
    """Markdown: keys and what they mean."""
    return "\n".join([f"| {heading} | meaning |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in keys.items())])
