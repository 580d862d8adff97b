"""Codex: only exit 2 with words, or a `deny` with a reason, refuses. Whatever else a hook does, the tool runs."""

from host import HookFailed, Host, Ran


class Codex(Host):
    name = "codex"

    def event(self, name, **fields):
        event = {
            "session_id": self.session, "turn_id": "turn-1", "transcript_path": None, "cwd": self.project,
            "hook_event_name": name, "model": "stand-in", "permission_mode": "default",
        }
        if self.subagent:
            event |= {"agent_id": self.subagent, "agent_type": "explorer"}
        return event | fields

    def start(self, source="startup"):
        event = self.event("SessionStart", source=source)
        del event["turn_id"]
        return self.listen(self.hook(event))

    def prompt(self, text):
        return self.listen(self.hook(self.event("UserPromptSubmit", prompt=text)))

    def refusal(self, heard):
        if heard.code == 2 and heard.errors.strip():
            return heard.errors.strip()
        if heard.code != 0:
            raise HookFailed(heard.code)
        if not heard.output.strip():
            return None
        answer = heard.json()
        if answer is None:
            raise HookFailed("bad JSON")
        inner = answer.get("hookSpecificOutput") or {}
        decision, reason = inner.get("permissionDecision"), inner.get("permissionDecisionReason")
        if decision == "deny" and reason:
            return reason
        if decision is not None:
            raise HookFailed(f"`{decision}` is not understood here")
        return None

    def use(self, kind, call, perform):
        tool, given = self._words(kind, call)
        same = {"tool_name": tool, "tool_input": given, "tool_use_id": self.next_id()}
        reason = self.refused(self.event("PreToolUse", **same))
        if reason is not None:
            return Ran(False, reason)
        output, code = perform()
        self.listen(self.hook(self.event("PostToolUse", tool_response=output, **same)))
        return Ran(True, output=output, code=code)

    def _words(self, kind, call):
        if kind == "shell":
            return "Bash", {"command": call["command"]}
        if kind == "read":
            # This host has no tool for reading: its agents use the shell.
            return "Bash", {"command": f"cat {call['path']}"}
        if kind == "write":
            added = "".join(f"+{line}\n" for line in call["text"].splitlines())
            return "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {call['path']}\n{added}*** End Patch\n"}
        if kind == "edit":
            lines = "".join(f"-{line}\n" for line in call["old"].splitlines())
            lines += "".join(f"+{line}\n" for line in call["new"].splitlines())
            changed = f"*** Update File: {call['path']}\n@@\n{lines}"
            return "apply_patch", {"command": f"*** Begin Patch\n{changed}*** End Patch\n"}
        return f"mcp__{call['server']}__{call['tool']}", call["arguments"]
