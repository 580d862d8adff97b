"""Claude Code: exit 2 or a JSON `deny` refuses; other exit codes are a failed hook, and `onFailure: "block"` holds.

Output that is no JSON is words for the agent, and the tool runs: so it was seen with the real host.
"""

from host import HookFailed, Host, Ran


class ClaudeCode(Host):
    name = "claude-code"
    refuses_on_failure = True
    through_shell = False

    def event(self, name, **fields):
        event = {
            "session_id": self.session, "transcript_path": f"{self.project}/.transcript.jsonl", "cwd": self.project,
            "permission_mode": "default", "hook_event_name": name,
        }
        if self.subagent:
            event |= {"agent_id": self.subagent, "agent_type": "Explore"}
        return event | fields

    def start(self, source="startup"):
        return self.listen(self.hook(self.event("SessionStart", source=source)))

    def prompt(self, text):
        return self.listen(self.hook(self.event("UserPromptSubmit", prompt=text)))

    def refusal(self, heard):
        if heard.code == 2:
            return heard.errors.strip() or "blocked by a hook"
        if heard.code != 0:
            raise HookFailed(heard.code)
        answer = heard.json()
        if answer is None:
            return None
        inner = answer.get("hookSpecificOutput") or {}
        # Nobody sits before a stand-in who could be asked.
        if inner.get("permissionDecision") in ("deny", "ask"):
            return inner.get("permissionDecisionReason") or "refused"
        return None

    def use(self, kind, call, perform):
        tool, given, extra = self._words(kind, call)
        same = {"tool_name": tool, "tool_input": given, "tool_use_id": self.next_id(), **extra}
        reason = self.refused(self.event("PreToolUse", **same))
        if reason is not None:
            return Ran(False, reason)
        output, code = perform()
        if code == 0:
            self.listen(self.hook(self.event("PostToolUse", tool_response=_response(kind, call, output), **same)))
        else:
            error = f"Exit code {code}\n{output}"
            self.listen(self.hook(self.event("PostToolUseFailure", error=error, is_interrupt=False, **same)))
        return Ran(True, output=output, code=code)

    def _words(self, kind, call):
        path = f"{self.project}/{call.get('path')}"
        if kind == "shell":
            return "Bash", {"command": call["command"], "description": "as asked"}, {}
        if kind == "read":
            return "Read", {"file_path": path}, {}
        if kind == "write":
            return "Write", {"file_path": path, "content": call["text"]}, {}
        if kind == "edit":
            return "Edit", {"file_path": path, "old_string": call["old"], "new_string": call["new"]}, {}
        server = {"mcp_server": {"name": call["server"], "source": "project"}}
        return f"mcp__{call['server']}__{call['tool']}", call["arguments"], server


def _response(kind, call, output):
    if kind == "shell":
        return {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    if kind in ("write", "edit"):
        return {"type": "update", "filePath": call["path"]}
    return {"content": output}
