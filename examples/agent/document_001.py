"""The samples of the documentation on agent verification, in order, against a server that is running.

    INTERLOCK_URL=http://127.0.0.1:7878 INTERLOCK_API_KEY=$(cat operator.key) python document_001.py

Only names are filled in: the key, the id of an agent, and the functions that the samples call and do not define. Each
sample has an agent of its own, because they use the same conversations and steps. What their comments promise is
asserted. The two framework samples need a framework and are not here.
"""

import hashlib
import os

from qwed_client import QWEDClient

if not __debug__:
    raise SystemExit("run this without -O: it asserts")
client = QWEDClient(api_key=os.environ["INTERLOCK_API_KEY"])


# What the samples call and do not define.
def execute_query(query):
    print("    the query would run:", query)


def request_human_approval():
    print("    a person is asked")


def get_database_checksum():
    return "orders: 3 rows, last change 2026-11-15T12:00:00Z"


query = "SELECT * FROM users"
samples = 0


def done(what, outcome):
    global samples
    samples += 1
    print(f"{samples:2} {what}: {outcome}")


def said(result):
    code = (result.get("error") or {}).get("code")
    return result["decision"] if code is None else f"{result['decision']} {code}"


# Registration.
def register():
    return client.register_agent(
        name="DataAnalyst",
        type="supervised",  # supervised, autonomous, trusted
        principal_id="user_123",
        permissions={
            "allowed_engines": ["math", "logic", "sql"],
            "blocked_tools": ["execute_code"],
        },
        budget={
            "max_daily_cost_usd": 100,
            "max_requests_per_hour": 500,
        },
    )


agent = register()
assert agent["agent_id"].startswith("agent_"), agent
assert agent["agent_token"].startswith("qwed_agent_"), "a token"
assert agent["permissions"]["blocked_tools"] == ["execute_code"], agent
assert (agent["status"], agent["trust_level"]) == ("active", 1), agent
done("registering an agent", f"{agent['agent_id']}, trust level {agent['trust_level']}")
agent_abc123 = agent["agent_id"]

# One action, and what each answer means for the program.
decision = client.verify_action(
    agent_id=agent_abc123,
    action={
        "type": "execute_sql",
        "query": query,
    },
    context={
        "conversation_id": "conv_xyz",
        "step_number": 1,
        "user_intent": "Get user list",
    },
)

if decision["decision"] == "APPROVED":
    execute_query(query)
elif decision["decision"] == "DENIED":
    print("    Action blocked:", decision["error"])
elif decision["decision"] == "PENDING":
    request_human_approval()
elif decision["decision"] == "BUDGET_EXCEEDED":
    print("    Budget limit reached:", decision["error"])
# The statement is proven to read only, which is low risk, and so the agent may run it.
assert decision["decision"] == "APPROVED", decision
verification = decision["verification"]
assert (verification["engine"], verification["status"], verification["risk_level"]) == ("sql", "VERIFIED", "low"), decision
done("verifying an action", said(decision))

# Steps of a conversation.
agent_abc123 = register()["agent_id"]
result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 1},
)
assert result["decision"] == "APPROVED", result
done("step 1", said(result))

result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 2},
)
assert result["decision"] == "APPROVED", result
done("step 2, the same action", said(result))

result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 3},
)
assert result["decision"] == "DENIED", result
assert result["error"]["code"] == "QWED-AGENT-LOOP-003", result
done("step 3, the same action again", said(result))

result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "verify_logic", "query": "x > 1"},
    context={"conversation_id": "conv_1", "step_number": 3},
)
# It succeeds on the same step. Nothing proves logic yet, so a person says the yes that the engine cannot; what came
# before it is the step, which is taken.
assert (result["decision"], result["verification"]["engine"]) == ("PENDING", "logic"), result
ticket = client.approve(result["approval_id"])
assert (ticket["status"], ticket["step_number"]) == ("approved", 3), ticket
done("step 3, another action", f"{said(result)}, then {ticket['status']}")

# Actions bound to the state they were proposed on.
agent_abc123 = register()["agent_id"]
db_snapshot = get_database_checksum()
state_hash = hashlib.sha256(db_snapshot.encode()).hexdigest()

decision = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "execute_sql", "query": "UPDATE orders SET status = 'shipped'"},
    context={
        "conversation_id": "conv_xyz",
        "step_number": 4,
        "pre_action_state_hash": state_hash,
        "state_source": "db_snapshot",
    },
)
# The fields are accepted. A write to every row is critical, which the table of trust and risk denies to a
# supervised agent.
assert (decision["decision"], decision["error"]["code"]) == ("DENIED", "QWED-AGENT-TRUST-001"), decision
assert decision["verification"]["risk_level"] == "critical", decision
done("an action with its state", said(decision))

# Not one of the samples, but what their text says: the third time on one state is refused.
for step, asked in enumerate(["2+2", "3+3", "2+2", "4+4", "2+2"], start=1):
    decision = client.verify_action(
        agent_id=agent_abc123,
        action={"type": "calculate", "query": asked},
        context={
            "conversation_id": "conv_loop",
            "step_number": step,
            "pre_action_state_hash": state_hash,
            "state_source": "db_snapshot",
        },
    )
    expected = "APPROVED" if step < 5 else "DENIED"
    assert decision["decision"] == expected, (step, decision)
assert decision["error"]["code"] == "QWED-AGENT-LOOP-004", decision
done("the third time on an unchanged state", said(decision))

# Tools that nobody listed.
agent_abc123 = register()["agent_id"]
result = client.verify_tool(
    agent_abc123, "my_custom_tool", parameters={}, context={"conversation_id": "conv_1", "step_number": 1}
)
assert result["approved"] is False, result
assert (
    result["blocked_reason"] == "Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)"
), result
done("an unknown tool", result["blocked_reason"])

# Tools that the registration lists.
agent = client.register_agent(
    name="DataAnalyst",
    type="supervised",
    principal_id="user_123",
    permissions={
        "allowed_engines": ["math", "logic", "sql"],
        "allowed_tools": ["my_custom_tool", "fetch_report"],
        "blocked_tools": ["execute_code"],
    },
    budget={"max_daily_cost_usd": 100},
)
for step, tool in enumerate(["my_custom_tool", "fetch_report"], start=1):
    result = client.verify_tool(
        agent["agent_id"], tool, parameters={}, context={"conversation_id": "conv_1", "step_number": step}
    )
    assert result["approved"] is True and result["decision"] == "APPROVED", result
done("tools on the allowlist", said(result))

# What is left to spend.
agent_abc123 = register()["agent_id"]
client.verify_action(
    agent_id=agent_abc123,
    action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 1},
)
budget = client.get_agent_budget(agent_abc123)
assert budget["cost"]["max_daily_usd"] == 100, budget
assert budget["cost"]["current_daily_usd"] == 0.01, budget
assert budget["requests"]["max_per_hour"] == 500, budget
assert budget["requests"]["current_hour"] == 1, budget
done("the budget", f"{budget['cost']['current_daily_usd']} of {budget['cost']['max_daily_usd']} USD")

# What the agent did.
activity = client.get_agent_activity(agent_abc123, limit=10)
for entry in activity:
    print(f"    {entry['timestamp']}: {entry['action_type']} -> {entry['decision']}")
assert [(entry["action_type"], entry["decision"]) for entry in activity] == [("calculate", "APPROVED")], activity
done("the activity", f"{len(activity)} entry")

# Types without a meaning.
agent_abc123 = register()["agent_id"]
result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "do_arbitrary_thing", "query": "..."},
    context={"conversation_id": "conv_1", "step_number": 1},
)
assert result["decision"] == "DENIED", result
assert result["error"]["code"] == "QWED-AGENT-ACTION-001", result
assert (
    result["error"]["message"]
    == "Unknown action_type 'do_arbitrary_thing' cannot be verified without explicit registered semantics"
), result
done("an unknown action", said(result))

# A step counts once.
agent_id = register()["agent_id"]
result = client.verify_action(agent_id, action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 1})
assert result["decision"] == "APPROVED", result
done("step 1", said(result))

result = client.verify_action(agent_id, action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 1})
assert (result["decision"], result["error"]["code"]) == ("DENIED", "QWED-AGENT-LOOP-002"), result
done("step 1 again", said(result))

# A name that sounds familiar has no meaning either.
result = client.verify_action(
    agent_id,
    action={"type": "transfer_funds_internal_v2", "query": "Move funds between ledgers"},
    context={"conversation_id": "conv_42", "step_number": 1},
)
assert (result["decision"], result["error"]["code"]) == ("DENIED", "QWED-AGENT-ACTION-001"), result
done("a type that sounds right", said(result))

# Such a denial has no verification and takes no step.
agent_abc123 = register()["agent_id"]
result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "transfer_funds_internal_v2", "query": "Move funds between ledgers"},
    context={"conversation_id": "conv_1", "step_number": 1},
)
assert (result["decision"], result["error"]["code"]) == ("DENIED", "QWED-AGENT-ACTION-001"), result
assert (
    result["error"]["message"]
    == "Unknown action_type 'transfer_funds_internal_v2' cannot be verified without explicit registered semantics"
), result
assert "verification" not in result, result
done("an unknown action has no verification", said(result))

result = client.verify_action(
    agent_id=agent_abc123,
    action={"type": "calculate", "query": "2+2"},
    context={"conversation_id": "conv_1", "step_number": 1},
)
assert result["decision"] == "APPROVED", result
done("its step is free for another", said(result))

print(f"all {samples} samples hold")
