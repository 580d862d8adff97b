"""What the requests of scripts/api-test need and a schema cannot say: an open ticket, a decision that lets run, a key, a
workflow.

A ticket is decided once, an execution reported once and a key revoked once, so each request of that kind gets a new one
in place of the stand-in that the configuration gives. A request for a ruling names the agent of its path, and its
Idempotency-Key is used once. Requests with anything else in those places are left alone.
"""

import os
import re

import requests
import schemathesis

URL = os.environ["API_TEST_URL"]
OPERATOR = {"X-API-Key": os.environ["API_TEST_KEY"]}
ASKER = os.environ["API_TEST_ASKER"]
TOKEN = {"X-Agent-Token": os.environ["API_TEST_ASKER_TOKEN"]}
AGENT = os.environ["API_TEST_AGENT"]
STAND_IN = os.environ["API_TEST_STAND_IN"]
KEY_STAND_IN = os.environ["API_TEST_KEY_STAND_IN"]

session = requests.Session()
step = 0
requests_sent = 0
ticket = None


def ask(path, body):
    """Asks for a ruling, each time in a conversation of its own."""
    global step
    step += 1
    body["context"] = {"conversation_id": f"api-test {step}", "step_number": 1}
    return post(f"/agents/{ASKER}/{path}", TOKEN, body)


def post(path, headers, body, statuses=(200,)):
    answer = session.post(URL + path, json=body, headers=headers, timeout=900)
    assert answer.status_code in statuses, (path, answer.status_code, answer.text)
    return answer.json()


def open_ticket():
    """The ticket of the last request if that left it open, otherwise a new one."""
    global ticket
    if ticket is not None:
        answer = session.get(f"{URL}/approvals/{ticket}", headers=OPERATOR, timeout=900)
        if answer.json()["status"] == "pending":
            return ticket
    ticket = ask("tools/drop_table", {"parameters": {"table": f"t{step}"}})["approval_id"]
    return ticket


WORKFLOW = {"id": "w", "initial": "a", "states": {"a": {"on": {"END": "z"}}, "z": {"type": "final"}}}


def whole(body):
    """Whole numbers are written as such."""
    if isinstance(body.get("seconds"), float) and body["seconds"].is_integer():
        body["seconds"] = int(body["seconds"])
    return body


def tidy(body):
    """What is allowed must be a decision, a command or a path that is one."""
    named = [key for key in ("decision_id", "command", "path") if isinstance(body.get(key), str)]
    stand_ins = {"decision_id": "dec_" + "0" * 32, "command": "cargo test *", "path": "/srv/shop/a"}
    body.update({key: stand_ins[key] for key in named})
    if not named and all(body.get(key) is None for key in stand_ins):
        body["decision_id"] = stand_ins["decision_id"]


@schemathesis.hook
def before_call(context, case, **kwargs):
    global requests_sent
    operation = case.operation.definition.raw.get("operationId")
    if operation in ("approve", "deny") and case.path_parameters.get("id") == STAND_IN:
        case.path_parameters["id"] = open_ticket()
    elif operation == "revokeKey" and case.path_parameters.get("id") == KEY_STAND_IN:
        key = post("/keys", OPERATOR, {"name": "spare", "role": "approver"}, (201,))
        case.path_parameters["id"] = key["key_id"]
    elif operation == "reportExecution" and isinstance(case.body, dict):
        if isinstance(case.body.get("decision_id"), str):
            ruling = ask("verify", {"action": {"type": "calculate", "query": f"{step} + 1 = {step + 1}"}})
            assert ruling["decision"] == "APPROVED", ruling
            case.body["decision_id"] = ruling["decision_id"]
    elif operation in ("startRun", "registerWorkflow") and isinstance(case.body, dict):
        if isinstance(case.body.get("workflow"), dict):
            case.body["workflow"] = WORKFLOW
    elif operation == "pauseRun" and isinstance(case.body, dict):
        whole(case.body)
    elif operation == "allowCall" and isinstance(case.body, dict):
        tidy(whole(case.body))
    elif operation in ("verifyAction", "callTool"):
        if isinstance(case.body, dict) and re.fullmatch("agent_[0-9a-f]{32}", str(case.body.get("agent_id"))):
            case.body["agent_id"] = AGENT
        key = (case.headers or {}).get("Idempotency-Key")
        if isinstance(key, str) and 1 <= len(key) <= 100:
            requests_sent += 1
            case.headers["Idempotency-Key"] = f"{key} {requests_sent}"


@schemathesis.hook
def after_call(context, case, response):
    # At most one request for trust may be open, so it is denied at once.
    if case.operation.definition.raw.get("operationId") == "requestTrust" and response.status_code == 202:
        post(f"/approvals/{response.json()['approval_id']}/deny", OPERATOR, {}, (200, 409))
