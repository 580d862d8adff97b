"""Checks attestations with PyJWT, from a key set alone.

Usage: check.py JWKS valid|unknown ALG < TOKENS, one token and the action it is about per line, a tab between them
"""

import hashlib
import json
import sys

import jwt

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def check(token: str, keys: dict[str, jwt.PyJWK]) -> dict:
    """The claims of a token; raises if it does not hold. This is all that a relying party has to write."""
    header = jwt.get_unverified_header(token)
    if header.get("typ") != "qwed-attestation+jwt" or header.get("kid") not in keys:
        raise jwt.InvalidTokenError("not an attestation of a known key")
    key = keys[header["kid"]]
    required = ["iss", "sub", "iat", "exp", "jti"]
    return jwt.decode(token, key, algorithms=[key.algorithm_name], options={"require": required})


def fingerprint(action: dict) -> str:
    """The subject an action has: SHA-256 of its canonical text. Enough for ASCII, integers and no floats."""
    parts = {name: action.get(name) for name in ("query", "code", "target", "parameters")}
    text = json.dumps({"action_type": action["type"], **parts}, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def main() -> None:
    path, expected, algorithm = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(json.load(file)).keys}
    tokens = changed = 0
    for line in sys.stdin:
        token, action = line.rstrip("\n").split("\t")
        if expected == "unknown":
            try:
                check(token, keys)
            except jwt.InvalidTokenError:
                tokens += 1
                continue
            sys.exit("PyJWT accepted a token of a key that is not in the set")
        claims = check(token, keys)
        assert jwt.get_unverified_header(token)["alg"] == algorithm, "another algorithm"
        assert claims["sub"] == fingerprint(json.loads(action)), "the subject is another action"
        assert claims["exp"] - claims["iat"] == 86400 and claims["jti"].startswith("att_")
        assert claims["iss"].startswith("did:qwed:node:") and claims["agent"].startswith("did:qwed:agent:")
        assert claims["qwed"]["version"] == "1.0" and claims["decision"] in ("APPROVED", "CORRECTED")
        tokens += 1
        for position, character in enumerate(token):
            # The highest of six bits: it belongs to a byte at every position.
            other = "A" if character == "." else ALPHABET[ALPHABET.index(character) ^ 32]
            try:
                check(token[:position] + other + token[position + 1 :], keys)
            except (jwt.InvalidTokenError, UnicodeDecodeError):
                changed += 1
                continue
            sys.exit(f"PyJWT accepted a token with a changed byte at {position}")
    assert tokens > 0, "no tokens"
    print(f"PyJWT {jwt.__version__}: {tokens} {algorithm} {expected}, {changed} with a changed byte refused")


main()
