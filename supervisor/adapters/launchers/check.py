"""The last look at a plan before it runs: a retired host must not be in it."""

import re
from collections.abc import Collection, Iterator

from supervisor.adapters.launchers.values import Plan
from supervisor.errors import SupervisorError
from supervisor.wire import canonical_host

_SEPARATORS = re.compile(r"[\s,]+")
_COUNT = re.compile(r":\d+$")  # host:4


def check_plan(plan: Plan, retired: Collection[str]) -> None:
    """Raise SupervisorError, for it is our own bug, when the plan names a retired host.

    The command's own words are not looked at: a user may well name a host there.
    """
    names = {canonical_host(host) for host in retired}
    for place, text in _places(plan):
        for word in _SEPARATORS.split(text):
            if word and canonical_host(_COUNT.sub("", word)) in names:
                raise SupervisorError(f"the plan names retired host {word} in its {place}")


def _places(plan: Plan) -> Iterator[tuple[str, str]]:
    yield from (("argv", word) for word in plan.argv[: plan.own_words])
    yield from ((f"environment: {name}", value) for name, value in plan.environment.items())
    yield "hostfile", plan.hostfile
