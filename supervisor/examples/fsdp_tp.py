"""Trains a small GPT with FSDP2 and tensor parallelism on any device, and fails on demand.

python -m supervisor.examples.fsdp_tp --train-iters 60 --save-interval 10 --ckpt-dir DIR

With the same number of ranks the loss of each step is the same number to the last bit on CPU,
however often the training was interrupted and resumed.
"""

import os
import sys

from supervisor.errors import SupervisorError
from supervisor.examples.options import Options, parse


def main() -> int:
    """Train; a mistake of the user's is one line, not a traceback."""
    try:
        _train(parse(sys.argv[1:]))
    except SupervisorError as error:
        print(f"fsdp_tp: {error}", file=sys.stderr, flush=True)
        return int(error.exit_code)
    return 0


def _train(options: Options) -> None:
    # Ranks that share a laptop's cores are fastest with one thread each, and sums keep their order.
    # torch reads this when it is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from supervisor.examples.training import train

    train(options)


if __name__ == "__main__":
    sys.exit(main())
