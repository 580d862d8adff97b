"""Interlock: nothing an agent does takes effect until it is verified.

>>> from interlock import AgentStateGuard
>>> guard = AgentStateGuard({"type": "object", "properties": {"done": {"type": "boolean"}}})
>>> guard.verify_state_payload('{"done": true}')["status"]
'VERIFIED'
>>> guard.verify_state_payload('{"done": 1}')["message"]
'Blocked: $.done must be a boolean, got integer'
"""

from interlock._interlock import MAX_VALIDATION_DEPTH, AgentStateGuard, __version__

__all__ = ["MAX_VALIDATION_DEPTH", "AgentStateGuard", "__version__"]
