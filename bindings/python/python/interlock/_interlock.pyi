from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

__version__: Final[str]

MAX_VALIDATION_DEPTH: Final = 64
"""A state with a value at this depth (the root has depth 0) is blocked."""

class AgentStateGuard:
    """A schema, transition rules and commit roots, checked once and never changed.

    Raises ``ValueError`` if one of them cannot be used. After that no method raises: each answers with a dictionary
    whose ``status`` is ``VERIFIED`` or ``BLOCKED``.
    """

    MAX_VALIDATION_DEPTH: Final = 64

    def __init__(
        self,
        required_schema: Mapping[str, Any],
        transition_rules: Mapping[str, Any] | None = None,
        allowed_commit_roots: Sequence[str | PathLike[str]] | None = None,
    ) -> None: ...
    @property
    def required_schema(self) -> Mapping[str, Any]:
        """The schema, read-only; lists appear as tuples."""

    @property
    def transition_rules(self) -> Mapping[str, Any]:
        """The rules, read-only, with every kind of rule present; lists appear as tuples."""

    @property
    def allowed_commit_roots(self) -> tuple[str, ...]:
        """The directories commits may go to."""

    def verify_state_payload(self, proposed_state_json: str) -> dict[str, Any]:
        """Verify a proposed state against the schema."""

    def verify_state_transition(self, current_state_json: str, proposed_state_json: str) -> dict[str, Any]:
        """Verify both states against the schema and the way from one to the other against the rules."""

    def verify_transition_and_commit_state(
        self, current_state_json: str, proposed_state_json: str, target_path: str
    ) -> dict[str, Any]:
        """Verify a transition and write the proposed state to a file in one step, or do nothing."""
