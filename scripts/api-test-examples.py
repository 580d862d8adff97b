"""Checks what Schemathesis does not: every example of a description fits its schema, and every component is used.

Usage: api-test-examples.py OPENAPI.JSON
"""

import json
import sys

import jsonschema_rs

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
count, wrong, used = 0, [], set()


def walk(value, place):
    global count
    if isinstance(value, list):
        for position, item in enumerate(value):
            walk(item, f"{place}/{position}")
    if not isinstance(value, dict):
        return
    used.add(value.get("$ref") if isinstance(value.get("$ref"), str) else None)
    if "schema" in value and isinstance(value.get("examples"), dict):
        root = {"$ref": "#/example", "example": value["schema"], "components": document["components"]}
        validator = jsonschema_rs.Draft202012Validator(root, validate_formats=True)
        for name, example in value["examples"].items():
            count += 1
            wrong.extend(f"{place}/{name}: {error.message}" for error in validator.iter_errors(example["value"]))
    for key, member in value.items():
        walk(member, f"{place}/{key}")


walk(document, "")
for kind in ("schemas", "responses", "parameters"):
    for name in document["components"][kind]:
        if f"#/components/{kind}/{name}" not in used:
            wrong.append(f"nothing uses {kind}/{name}")
if wrong or count < 100:
    sys.exit("\n".join([f"{count} examples", *wrong]))
print(f"{count} examples fit their schemas")
