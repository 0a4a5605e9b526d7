"""Steps are read off what trainers print, and off nothing that only looks like it."""

import time

import pytest

from supervisor.adapters.step_lines import latest_step

STATED = {
    b"[2026-01-01 10:00:00][I] step=12 loss=2.5 lr=1e-4 dt=0.8s": 12,
    b"step 12: train loss 4.1, val loss 4.2": 12,
    b"iter 12: loss 4.19, time 135.11ms, mfu 31.2%": 12,
    b"iter=12 loss=3": 12,
    b"iteration 12/50": 12,
    b" iteration       12/     500 | samples: 512 | elapsed time per iteration (ms): 8.1 |": 12,
    b" [2026-05-01 10:00:01] iteration       12/     500 | consumed samples:          512 |": 12,
    b"[rank0]: [step 12] loss 3.2": 12,
    b"[Step 12/500] loss 3.2": 12,
    b"global_step=120, epoch=1": 120,
    b"train/global_step: 120": 120,
    b"trainer/global_step 120": 120,
    b'{"step": 12, "loss": 3.2}': 12,
    b"{'step': '12', 'loss': '3.2'}": 12,
    b"[titan] 2026-01-01 - INFO - step: 18  loss:  8.1  memory:  9.0GiB(11%)  tps: 1,200": 18,
    b"\x1b[31mstep: 18  \x1b[32mloss:  8.1\x1b[39m": 18,
    b"[\x1b[90m17:29:55\x1b[0m] \x1b[36miter\x1b[0m=\x1b[1;36m42\x1b[0m loss=13.9": 42,
    b"12: step=7 loss=1": 7,
    b"(WorkerDict pid=26110, ip=10.9.8.7) step=2 loss=2.49": 2,
    b"[1,5]<stdout>:step=3 loss=2.48": 3,
    b"Epoch 3:  12%|\xe2\x96\x88\xe2\x96\x8f   | 34/280 [00:05<00:40,  6.11it/s, loss=0.5]": 874,
    b"Epoch: [3][ 34/280]\tTime 0.1 (0.1)\tLoss 3.2": 874,
    b"Epoch 3, Step 34/280, loss 2.0": 874,
    b"epoch 3 step 874 loss 2.0": 874,
    b"{'loss': 0.3, 'grad_norm': 1.1, 'learning_rate': 5e-05, 'epoch': 0.12}": 120000,
    b"{'loss': '0.3', 'epoch': '1.5'}": 1500000,
    b"step=1\rstep=2\rstep=3": 3,
}

NOT_STATED = [
    b"timestep=12",
    b"timestep: 12",
    b"diffusion time step 12",
    b"steps per second: 12",
    b"n_steps=1000",
    b"max_steps: 500",
    b"max_step=500",
    b"max step: 500",
    b"total step 500",
    b"num_iter=500",
    b"step_size=4",
    b"warmup_step=100",
    b"gradient_accumulation_steps: 4",
    b"log_every_n_steps=10",
    b"step time: 12.5",
    b"step: 0.1",
    b"step 12%",
    b"elapsed time per iteration (ms): 500.0",
    b"iter/s: 12",
    b"TrainConfig(steps=500, step_size=4, max_iter=20, epoch=3)",
    b"Loading checkpoint shards:  12%|#2  | 34/280 [00:05<00:40]",
    b"stepping stones 12",
    b"a quick reiteration 12",
    b"",
]


@pytest.mark.parametrize("line", STATED)
def test_step_of_a_known_form_is_read(line: bytes) -> None:
    assert STATED[line] == latest_step(line + b"\n")


@pytest.mark.parametrize("line", NOT_STATED)
def test_settings_and_rates_are_no_steps(line: bytes) -> None:
    assert latest_step(line + b"\n") is None


def test_last_step_of_a_block_counts() -> None:
    block = b"step=1 loss=2\nmax_steps: 9\nstep=2 loss=2\nsaving\ntimestep=77\nn_iter=5\n"

    assert latest_step(block) == 2


def test_stated_step_outranks_a_bar() -> None:
    block = b"step=5\nEpoch 0:  12%|#   | 34/280 [00:05<00:40]\n"

    assert latest_step(block) == 5


def test_epoch_fractions_rise() -> None:
    steps = [latest_step(b"{'epoch': %s}\n" % text) for text in (b"0.99", b"1", b"1.0", b"1.01")]

    assert steps == [990000, 1000000, 1000000, 1010000]


def test_bytes_of_any_kind_state_nothing() -> None:
    assert latest_step(bytes(range(256)) * 50) is None


def test_ordinary_text_costs_no_more_than_ten_searches_of_it() -> None:
    line = b"[2026-01-01 10:00:00][I] loss=2.41 lr=2.1e-04 gnorm=0.10 dt=0.80s mfu=41.2%% %d\n"
    block = b"".join(line % number for number in range(20_000))

    def fastest(read: object) -> float:
        times = []
        for _ in range(5):
            began = time.thread_time()
            read()  # type: ignore[operator]
            times.append(time.thread_time() - began)
        return min(times)

    words = (b"quart", b"fjord", b"nymph", b"vexed", b"dwarf", b"glyph", b"waltz", b"bandj")
    searches = fastest(lambda: [block.rfind(word) for word in words])

    assert fastest(lambda: latest_step(block)) < 10 * searches
