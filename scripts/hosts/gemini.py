"""Gemini CLI: calls have no ids; a JSON `deny` refuses, and so does an exit code above 1 with words beside it: its
shell has both when the program is not there. After any other trouble the tool runs.
"""

from datetime import datetime, timezone

from host import HookFailed, Host, Ran


class Gemini(Host):
    name = "gemini"
    tells_subagents = False
    refuses_without_program = True

    def event(self, name, **fields):
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            "session_id": self.session, "transcript_path": f"{self.project}/.gemini-chat.json", "cwd": self.project,
            "hook_event_name": name, "timestamp": now, **fields,
        }

    def start(self, source="startup"):
        return self.listen(self.hook(self.event("SessionStart", source=source)))

    def prompt(self, text):
        return self.listen(self.hook(self.event("BeforeAgent", prompt=text)))

    def refusal(self, heard):
        if heard.code is not None and heard.code > 1 and heard.errors.strip():
            return heard.errors.strip()
        if heard.code != 0:
            raise HookFailed(heard.code)
        # Output that is not JSON is shown to the user, and the tool runs.
        answer = heard.json() or {}
        if answer.get("decision") in ("deny", "block"):
            return answer.get("reason") or "refused"
        return None

    def use(self, kind, call, perform):
        tool, given, extra = self._words(kind, call)
        same = {"tool_name": tool, "tool_input": given, **extra}
        reason = self.refused(self.event("BeforeTool", **same))
        if reason is not None:
            return Ran(False, reason)
        output, code = perform()
        text = f"Output: {output}\nExit Code: {code}" if kind == "shell" else output
        response = {"llmContent": text, "returnDisplay": output}
        self.listen(self.hook(self.event("AfterTool", tool_response=response, **same)))
        return Ran(True, output=output, code=code)

    def _words(self, kind, call):
        path = f"{self.project}/{call.get('path')}"
        if kind == "shell":
            return "run_shell_command", {"command": call["command"]}, {}
        if kind == "read":
            return "read_file", {"file_path": path}, {}
        if kind == "write":
            return "write_file", {"file_path": path, "content": call["text"]}, {}
        if kind == "edit":
            given = {"file_path": path, "instruction": "as asked", "old_string": call["old"], "new_string": call["new"]}
            return "replace", given, {}
        server = {"mcp_context": {"server_name": call["server"], "tool_name": call["tool"]}}
        return f"mcp_{call['server']}_{call['tool']}", call["arguments"], server
