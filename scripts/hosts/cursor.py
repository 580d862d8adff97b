"""Cursor: it asks about one call several times, and any of them can refuse; `failClosed: true` holds for each."""

import json

from host import HookFailed, Host, Ran


class Cursor(Host):
    name = "cursor"
    refuses_on_failure = True
    # A subagent is a conversation of its own, told by nothing.
    tells_subagents = False

    def event(self, name, **fields):
        return {
            "conversation_id": self.subagent or self.session, "generation_id": "generation-1", "model": "stand-in",
            "hook_event_name": name, "cursor_version": "2.4.1", "workspace_roots": [self.project], "user_email": None,
            "transcript_path": None, **fields,
        }

    def start(self, source="startup"):
        fields = {"session_id": self.session, "is_background_agent": False, "composer_mode": "agent"}
        return self.listen(self.hook(self.event("sessionStart", **fields)))

    def prompt(self, text):
        return self.listen(self.hook(self.event("beforeSubmitPrompt", prompt=text, attachments=[])))

    def refusal(self, heard):
        if heard.code == 2:
            return heard.errors.strip() or "blocked by a hook"
        if heard.code != 0:
            raise HookFailed(heard.code)
        if not heard.output.strip():
            return None
        answer = heard.json()
        if answer is None:
            return "the hook's answer is not JSON"
        if answer.get("permission") in ("deny", "ask"):
            return answer.get("agent_message") or answer.get("user_message") or "refused"
        return None

    def use(self, kind, call, perform):
        tool, given = self._words(kind, call)
        same = {"tool_name": tool, "tool_input": given, "tool_use_id": self.next_id(), "cwd": self.project}
        asked = [self.event("preToolUse", agent_message="as asked", **same)]
        if kind == "shell":
            asked.append(self.event("beforeShellExecution", command=call["command"], cwd=self.project, sandbox=False))
        elif kind == "read":
            content = self._text(call["path"])
            asked.append(self.event("beforeReadFile", file_path=given["file_path"], content=content, attachments=[]))
        elif kind == "mcp":
            bare = {"tool_name": call["tool"], "tool_input": json.dumps(call["arguments"]), "command": call["server"]}
            asked.append(self.event("beforeMCPExecution", **bare))
        for event in asked:
            reason = self.refused(event)
            if reason is not None:
                failure = {"error_message": "denied", "failure_type": "permission_denied", "duration": 1}
                self.hook(self.event("postToolUseFailure", is_interrupt=False, **failure, **same))
                return Ran(False, reason)
        output, code = perform()
        if kind == "shell":
            ended = {"command": call["command"], "output": output, "duration": 1, "sandbox": False}
            self.hook(self.event("afterShellExecution", **ended))
            told = {"exitCode": code, "stdout": output}
        elif kind in ("write", "edit"):
            edits = [{"old_string": call.get("old", ""), "new_string": call.get("new", call.get("text", ""))}]
            self.hook(self.event("afterFileEdit", file_path=f"{self.project}/{call['path']}", edits=edits))
            told = {"success": True}
        elif kind == "mcp":
            bare = {"tool_name": call["tool"], "tool_input": json.dumps(call["arguments"])}
            self.hook(self.event("afterMCPExecution", result_json=json.dumps(output), duration=1, **bare))
            told = {"content": output}
        else:
            told = {"content": output}
        self.listen(self.hook(self.event("postToolUse", tool_output=json.dumps(told), duration=1, **same)))
        return Ran(True, output=output, code=code)

    def _words(self, kind, call):
        path = f"{self.project}/{call.get('path')}"
        if kind == "shell":
            return "Shell", {"command": call["command"], "working_directory": self.project}
        if kind == "read":
            return "Read", {"file_path": path}
        if kind == "write":
            return "Write", {"file_path": path, "contents": call["text"]}
        if kind == "edit":
            return "StrReplace", {"path": path, "old_string": call["old"], "new_string": call["new"]}
        return f"MCP:{call['tool']}", call["arguments"]
