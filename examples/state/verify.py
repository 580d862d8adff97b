"""The state guard from Python: one transition is verified, another blocked with a reason.

    pip install ./bindings/python
    python examples/state/verify.py
"""

import json
from pathlib import Path

from interlock import AgentStateGuard

here = Path(__file__).parent
guard = AgentStateGuard(**json.loads((here / "guard.json").read_text()))
current = (here / "current.json").read_text()
for name in ("finished", "reopened"):
    decision = guard.verify_state_transition(current, (here / f"{name}.json").read_text())
    print(f"{name}:", decision["status"], decision.get("proof_ref") or decision["message"])
