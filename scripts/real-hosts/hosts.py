"""The real hosts: how each is started without anybody before it, what its tools are called, and what it is configured by.

Whatever a host would need beyond its hooks to run here (a key, an address of a model) is set beside what `interlock
install` wrote; the hooks and the server are left as installed.
"""

import json
import os
import subprocess


class RealHost:
    name = ""
    # Whether the host refuses a tool when its hook cannot be run.
    refuses_without_hook = False
    # Whether the tools of MCP servers have to be looked up by the model before it can call them.
    looks_tools_up = False
    # Whether the start of a session and a prompt have words for the model.
    limit = 60

    def __init__(self, programs, user, project, model):
        self.programs = programs
        self.user = user
        self.project = project
        self.model = model
        passed = {"PATH", "LANG", "LC_ALL", "TMPDIR", "TZ"}
        # What looks for another way out than loopback finds the model, which refuses to be one.
        self.environment = {name: value for name, value in os.environ.items() if name in passed} | {
            "HOME": user, "TERM": "dumb", "CI": "1",
            "HTTPS_PROXY": model.url, "HTTP_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost",
            "https_proxy": model.url, "http_proxy": model.url, "no_proxy": "127.0.0.1,localhost",
        }

    def talk(self, script, prompt="Do what is to be done."):
        """One session in which the model follows the script. What the model had read at each turn is in `model`."""
        self.model.begin(script)
        done = subprocess.run(
            self.line(prompt), env=self.environment | self.variables(), cwd=self.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=self.limit, check=False,
        )
        return Talk(done, self.model.requests, self.turns)

    def settings(self):
        """Adds what is not ours to the settings, after `interlock install`."""

    def variables(self):
        raise NotImplementedError

    def line(self, prompt):
        raise NotImplementedError

    def path(self, name):
        return os.path.join(self.project, name)


class Talk:
    """A session that is over."""

    def __init__(self, done, requests, turns):
        self.done = done
        self.requests = requests
        self.turns = turns

    def read(self, turn):
        """The text that the model read for the first time before this turn; turn 0 is the first."""
        if turn >= len(self.requests):
            return ""
        now = self.requests[turn]
        before = len(self.turns(self.requests[turn - 1])) if turn else 0
        said = self.turns(now)[before:]
        return json.dumps([said, now.get("system")] if turn == 0 else said, ensure_ascii=False)

    def __str__(self):
        last = self.read(len(self.requests) - 1)
        return f"exit {self.done.returncode}, {len(self.requests)} turns: {self.done.stderr[-600:]} … {last[-1500:]}"


class ClaudeCode(RealHost):
    name = "claude-code"
    refuses_without_hook = True
    looks_tools_up = True
    turns = staticmethod(lambda body: body["messages"])

    def variables(self):
        return {
            "ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def line(self, prompt):
        # What the host itself would ask a person about is let through here, so that only the hook is left to refuse.
        allowed = "Bash,Read,Edit,Write,ToolSearch,mcp__interlock"
        return [os.path.join(self.programs, "claude"), "-p", prompt, "--allowedTools", allowed]

    def shell(self, command):
        return "Bash", {"command": command, "description": "as asked"}

    def read(self, path):
        return "Read", {"file_path": self.path(path)}

    def write(self, path, text):
        return "Write", {"file_path": self.path(path), "content": text}

    def edit(self, path, old, new):
        return "Edit", {"file_path": self.path(path), "old_string": old, "new_string": new}

    def look_up(self):
        names = "mcp__interlock__interlock_get_state,mcp__interlock__interlock_transition"
        return "ToolSearch", {"query": "select:" + names, "max_results": 5}

    def control(self, tool, **arguments):
        return "mcp__interlock__interlock_" + tool, arguments


class Codex(RealHost):
    name = "codex"
    looks_tools_up = True
    turns = staticmethod(lambda body: body["input"])

    def settings(self):
        path = os.path.join(self.user, ".codex", "config.toml")
        with open(path, encoding="utf-8") as file:
            installed = file.read()
        # Before the tables that are there, because plain keys end with the first table.
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                'model = "gpt-5.5"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
                f'base_url = "{self.model.url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n\n' + installed
            )

    def variables(self):
        return {"SCRIPTED_KEY": "none"}

    def line(self, prompt, accepted=True):
        line = [os.path.join(self.programs, "codex"), "exec", "--json", "--dangerously-bypass-approvals-and-sandbox"]
        # A person accepts hooks in `/hooks`. Nobody sits here, so they are accepted for one session.
        return line + (["--dangerously-bypass-hook-trust"] if accepted else []) + [prompt]

    def shell(self, command):
        return "exec_command", {"cmd": command}

    def read(self, path):
        return self.shell(f"cat {path}")

    def write(self, path, text):
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return "apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"

    def edit(self, path, old, new):
        return "apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"

    def look_up(self):
        return "tool_search", {"query": "interlock"}

    def control(self, tool, **arguments):
        return "mcp__interlock/interlock_" + tool, arguments


class Gemini(RealHost):
    name = "gemini"
    turns = staticmethod(lambda body: body["contents"])

    def settings(self):
        path = os.path.join(self.user, ".gemini", "settings.json")
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        settings["privacy"] = {"usageStatisticsEnabled": False}
        settings["general"] = {"enableAutoUpdate": False}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=2)

    def variables(self):
        return {
            "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.model.url, "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def line(self, prompt):
        return [os.path.join(self.programs, "gemini"), "-p", prompt, "-m", "gemini-2.5-pro", "--yolo"]

    def shell(self, command):
        return "run_shell_command", {"command": command}

    def read(self, path):
        return "read_file", {"file_path": path}

    def write(self, path, text):
        return "write_file", {"file_path": path, "content": text}

    def edit(self, path, old, new):
        return "replace", {"file_path": path, "instruction": "as asked", "old_string": old, "new_string": new}

    def control(self, tool, **arguments):
        return "mcp_interlock_interlock_" + tool, arguments


HOSTS = (ClaudeCode, Codex, Gemini)
