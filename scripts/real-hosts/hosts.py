"""The real hosts: how each is started without anybody before it, what its tools are called, what it is configured by.

Whatever a host would need beyond its hooks to run here (a key, an address of a model) is set beside what `interlock
install` wrote; the hooks and the server are left as installed.
"""

import json
import os
import signal
import subprocess

# Far more than any session here takes.
LIMIT_S = 900
# What a subagent is told to do, and known by.
TASK = "Look around, and say nothing."


class RealHost:
    name = ""
    # In which ways the hook's program can fail so that the host refuses the tool.
    refuses_when = ()
    # Whether the tools of MCP servers have to be looked up by the model before it can call them.
    looks_tools_up = False

    def __init__(self, programs, user, project, model):
        self.programs = programs
        self.user = user
        self.project = project
        self.model = model
        model.is_subagent = self.is_subagent
        passed = {"PATH", "LANG", "LC_ALL", "TMPDIR", "TZ"}
        # What looks for another way out than loopback finds the model, which refuses to be one.
        self.environment = {name: value for name, value in os.environ.items() if name in passed} | {
            "HOME": user, "TERM": "dumb", "CI": "1",
            "HTTPS_PROXY": model.url, "HTTP_PROXY": model.url, "NO_PROXY": "127.0.0.1,localhost",
            "https_proxy": model.url, "http_proxy": model.url, "no_proxy": "127.0.0.1,localhost",
        }

    def talk(self, script, subagent=(), **how):
        """One session in which the model follows the script. What the model had read at each turn is in `model`."""
        self.model.begin(script, subagent)
        # A session of its own, because a host that hangs has children that would be left.
        process = subprocess.Popen(
            self.line("Do what is to be done.", **how), env=self.environment | self.variables(), cwd=self.project,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        try:
            said = process.communicate(timeout=LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return Talk(self, process.returncode, "".join(said), self.model.requests)

    def settings(self):
        """Adds what is not ours to the settings, after `interlock install`."""

    def variables(self):
        raise NotImplementedError

    # Whether no line runs without its runner.
    holds = False

    def line(self, prompt):
        raise NotImplementedError

    def results(self, body):
        """What a request says about the calls that were made so far, in their order."""
        raise NotImplementedError

    def is_subagent(self, body):
        raise NotImplementedError

    def with_subagent(self):
        """The scripts of a main agent that starts a subagent, and of the subagent."""
        raise NotImplementedError

    def path(self, name):
        return os.path.join(self.project, name)


class Talk:
    """A session that is over."""

    def __init__(self, host, code, said, requests):
        self.host = host
        self.code = code
        self.said = said
        self.requests = requests

    def first(self):
        """All that the model read before its first turn, the list of its tools aside."""
        return json.dumps({**self.requests[0], "tools": None}, ensure_ascii=False) if self.requests else ""

    def tools(self):
        return json.dumps(self.requests[0].get("tools"), ensure_ascii=False) if self.requests else ""

    def result(self, call):
        """What the model read about a call of its script; 0 is the first."""
        results = self.host.results(self.requests[-1]) if self.requests else []
        return json.dumps(results[call], ensure_ascii=False) if call < len(results) else ""

    def everything(self):
        """What the model read about all calls, for when something went wrong."""
        return self.host.results(self.requests[-1]) if self.requests else self.said

    def __str__(self):
        results = self.host.results(self.requests[-1]) if self.requests else []
        return f"exit {self.code} after {len(self.requests)} turns, results {results}: {self.said[-800:]}"


class ClaudeCode(RealHost):
    name = "claude-code"
    holds = True
    # Words on the output that are not JSON are words for the model here, not a failure; but a line that got no ticket is
    # not run by the shell prefix.
    refuses_when = (
        "is not there", "ends with 1", "ends with 3 and words", "ends with 3 and says nothing", "is killed",
        "prints no JSON", "prints JSON of another shape",
    )
    looks_tools_up = True

    def variables(self):
        return {
            "ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def line(self, prompt):
        # What the host itself would ask a person about is let through here, so that only the hook is left to refuse.
        allowed = "Agent,Bash,Edit,Read,SendMessage,ToolSearch,Write,mcp__interlock"
        return [os.path.join(self.programs, "claude"), "-p", prompt, "--allowedTools", allowed]

    def results(self, body):
        blocks = [block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
        return [block["content"] for block in blocks if block["type"] == "tool_result"]

    def shell(self, command):
        return "Bash", {"command": command, "description": "as asked"}

    def read(self, path):
        return "Read", {"file_path": self.path(path)}

    def write(self, path, text):
        return "Write", {"file_path": self.path(path), "content": text}

    def edit(self, path, old, new):
        return "Edit", {"file_path": self.path(path), "old_string": old, "new_string": new}

    def list_in(self, directory):
        # The shell stays where a command went to, and later events say so.
        return [self.shell("cd " + directory), self.shell("ls")]

    def is_subagent(self, body):
        return TASK in json.dumps(body["messages"][0])

    def with_subagent(self):
        # It works behind the main agent's back, and longer: the main agent is told that it began, and its turn ends.
        # What is told of a message before it is sent is more than afterwards.
        start = "Agent", {"description": "look around", "prompt": TASK, "subagent_type": "general-purpose"}
        message = "SendMessage", {"to": "nobody", "summary": "hello", "message": "hello"}
        return [start, message], [self.shell("sleep 3")]

    def look_up(self):
        names = "mcp__interlock__interlock_get_state,mcp__interlock__interlock_transition"
        return "ToolSearch", {"query": "select:" + names, "max_results": 5}

    def control(self, tool, **arguments):
        return "mcp__interlock__interlock_" + tool, arguments


class Codex(RealHost):
    name = "codex"
    looks_tools_up = True

    def settings(self):
        path = os.path.join(self.user, ".codex", "config.toml")
        with open(path, encoding="utf-8") as file:
            installed = file.read()
        # What the host itself would ask a person about is let through here, so that only the hook is left to refuse.
        server = "[mcp_servers.interlock]\n"
        installed = installed.replace(server, server + 'default_tools_approval_mode = "approve"\n')
        # Before the tables that are there, because plain keys end with the first table.
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                'model = "gpt-5.5"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
                f'base_url = "{self.model.url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n\n'
                # All of this lies among temporary files, where the homes of users do not.
                "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n\n" + installed
            )

    def variables(self):
        return {"SCRIPTED_KEY": "none"}

    def line(self, prompt, accepted=True, sandbox="workspace-write"):
        line = [os.path.join(self.programs, "codex"), "exec", "--json", "--sandbox", sandbox]
        # A person accepts hooks in `/hooks`. Nobody sits here, so they are accepted for one session.
        return line + (["--dangerously-bypass-hook-trust"] if accepted else []) + [prompt]

    def results(self, body):
        return [item.get("output", item) for item in body["input"] if item["type"].endswith("_output")]

    def shell(self, command):
        return "exec_command", {"cmd": command}

    def read(self, path):
        return self.shell(f"cat {path}")

    def write(self, path, text):
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return "apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"

    def edit(self, path, old, new):
        return "apply_patch", f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"

    def list_in(self, directory):
        return [("exec_command", {"cmd": "ls", "workdir": self.path(directory)})]

    def is_subagent(self, body):
        return any(TASK in json.dumps(item) for item in body["input"] if item.get("role") == "user")

    def with_subagent(self):
        return [("multi_agent_v1/spawn_agent", {"message": TASK}), self.shell("sleep 2")], [self.shell("ls build")]

    def look_up(self):
        return "tool_search", {"query": "interlock"}

    def control(self, tool, **arguments):
        return "mcp__interlock/interlock_" + tool, arguments


class Gemini(RealHost):
    name = "gemini"
    # Its shell ends with 127 when the program is not there, and anything above 1 refuses if there are words with it.
    refuses_when = ("is not there", "ends with 3 and words")

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

    def results(self, body):
        parts = [part for turn in body["contents"] for part in turn["parts"]]
        return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]

    def shell(self, command):
        return "run_shell_command", {"command": command}

    def read(self, path):
        return "read_file", {"file_path": path}

    def write(self, path, text):
        return "write_file", {"file_path": path, "content": text}

    def edit(self, path, old, new):
        return "replace", {"file_path": path, "instruction": "as asked", "old_string": old, "new_string": new}

    def list_in(self, directory):
        return [("run_shell_command", {"command": "ls", "dir_path": directory})]

    def is_subagent(self, body):
        return '"complete_task"' in json.dumps(body["tools"])

    def with_subagent(self):
        report = {"SummaryOfFindings": "none", "ExplorationTrace": ["none"], "RelevantLocations": []}
        start = "invoke_agent", {"agent_name": "codebase_investigator", "prompt": TASK}
        return [start], [("list_directory", {"dir_path": "build"}), ("complete_task", {"report": report})]

    def control(self, tool, **arguments):
        # The host offers this flag with every tool, also with those of servers.
        return "mcp_interlock_interlock_" + tool, arguments | {"wait_for_previous": True}


HOSTS = (ClaudeCode, Codex, Gemini)
