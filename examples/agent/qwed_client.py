"""A client in a hundred lines, standard library only: enough to run the samples of the documentation.

It never turns a failure into a permission. A server that cannot be reached, that answers with something else than
JSON or with an error that is no decision, raises `GateError`; the caller does not act.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

ANSWER_BYTES_MAX = 16 * 1024 * 1024
TIMEOUT_SECONDS = 30


class GateError(Exception):
    """There is no decision. `code` says why, where the server said so."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    # Who follows a redirect hands its token to whoever is at the other end.
    def redirect_request(self, *_):
        return None


class QWEDClient:
    """Speaks for an operator, and for the agents that it registered itself."""

    def __init__(self, api_key=None, base_url=None):
        self._url = (base_url or os.environ.get("INTERLOCK_URL") or "http://127.0.0.1:7878").rstrip("/")
        self._key = api_key or os.environ["INTERLOCK_API_KEY"]
        self._tokens = {}
        # No proxy of the environment: it would see keys and tokens.
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))

    def register_agent(self, name, type, principal_id, permissions=None, budget=None, **more):
        """Registers an agent and keeps its token for the calls below."""
        body = {"name": name, "type": type, "principal_id": principal_id, **more}
        if permissions is not None:
            body["permissions"] = permissions
        if budget is not None:
            body["budget"] = budget
        agent = self._ask("POST", "/agents/register", {"X-API-Key": self._key}, body)
        self._tokens[agent["agent_id"]] = agent["agent_token"]
        return agent

    def verify_action(self, agent_id, action, context, options=None, usage=None):
        """Asks before an action. The answer is a decision, whatever it says; no decision raises."""
        body = {"action": action, "context": context}
        if options is not None:
            body["options"] = options
        if usage is not None:
            body["usage"] = usage
        return self._decide(f"/agents/{_part(agent_id)}/verify", agent_id, body)

    def verify_tool(self, agent_id, tool, parameters, context):
        """Asks before a tool is called."""
        body = {"parameters": parameters, "context": context}
        return self._decide(f"/agents/{_part(agent_id)}/tools/{_part(tool)}", agent_id, body)

    def approve(self, approval_id):
        """The yes of a person, who has the operator's key; not a thing that an agent can say."""
        return self._ask("POST", f"/approvals/{_part(approval_id)}/approve", {"X-API-Key": self._key}, {})

    def get_agent_budget(self, agent_id):
        """What the agent may spend, and has spent."""
        return self._ask("GET", f"/agents/{_part(agent_id)}/budget", self._as_agent(agent_id))

    def get_agent_activity(self, agent_id, limit=100):
        """The last rulings of an agent, newest first."""
        path = f"/agents/{_part(agent_id)}/activity?limit={int(limit)}"
        return self._ask("GET", path, self._as_agent(agent_id))["activities"]

    def _as_agent(self, agent_id):
        if agent_id not in self._tokens:
            raise GateError(f"this client did not register `{agent_id}` and has no token of it")
        return {"X-Agent-Token": self._tokens[agent_id]}

    def _decide(self, path, agent_id, body):
        answer = self._ask("POST", path, self._as_agent(agent_id), body, refusals=True)
        if answer.get("decision") not in ("APPROVED", "DENIED", "PENDING", "CORRECTED", "BUDGET_EXCEEDED"):
            raise GateError("the answer is no decision")
        return answer

    def _ask(self, method, path, headers, body=None, refusals=False):
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _read(answer)
        except urllib.error.HTTPError as refused:
            answer = _read(refused)
            # A refusal of verify and tools is a decision: it says DENIED.
            if refusals and answer.get("decision") == "DENIED":
                return answer
            error = answer.get("error") or {}
            raise GateError(error.get("message", f"status {refused.code}"), error.get("code")) from None
        except OSError as error:
            raise GateError(f"no answer, so no permission: {error}") from error


def _part(text):
    return urllib.parse.quote(text, safe="")


def _read(answer):
    text = answer.read(ANSWER_BYTES_MAX + 1)
    if len(text) > ANSWER_BYTES_MAX:
        raise GateError("the answer is too large")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise GateError("the answer is not JSON") from error
    if not isinstance(value, dict):
        raise GateError("the answer is no object")
    return value
