"""`--dry-run`: the plan of the first attempt, printed; nothing is written and nothing started.

What is known only when an attempt begins stays open: no resume point, and port 0.
"""

import json
import shlex

from supervisor.adapters.launch_request import request_of
from supervisor.adapters.launchers import LaunchRequest, Plan, plan
from supervisor.adapters.run_spec import RunSpec


def show(spec: RunSpec, as_json: bool) -> None:
    """Print what the first attempt of this run would start."""
    made = plan(spec.launcher, _first_request(spec))
    print(_as_json(spec, made) if as_json else _told(spec, made))


def _first_request(spec: RunSpec) -> LaunchRequest:
    return request_of(
        spec, run_id=spec.run_id, attempt=1, hosts=spec.active, resume_from="", master_port=0
    )


def _as_json(spec: RunSpec, made: Plan) -> str:
    fields = {
        "hosts": list(spec.active),
        "spares": list(spec.spares),
        "argv": list(made.argv),
        "environment": dict(made.environment),
        "hostfile": made.hostfile,
    }
    return json.dumps(fields, indent=2)


def _told(spec: RunSpec, made: Plan) -> str:
    launcher = spec.launcher
    return "\n".join(
        (
            f"launcher: {launcher.program} ({launcher.flavour} {launcher.version})",
            f"hosts: {' '.join(spec.active)}",
            f"spares: {' '.join(spec.spares) or 'none'}",
            f"argv: {shlex.join(made.argv)}",
            "environment:",
            *(f"  {name}={shlex.quote(value)}" for name, value in made.environment.items()),
            f"hostfile {made.hostfile_path}:",
            *(f"  {line}" for line in made.hostfile.splitlines()),
        )
    )
