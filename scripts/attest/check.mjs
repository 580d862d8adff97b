// Checks attestations with jose, from a key set alone.
// Usage: check.mjs JWKS valid|unknown ALG < TOKENS, one token and the action it is about per line, a tab between them
import { readFileSync } from "node:fs";
import { createLocalJWKSet, jwtVerify } from "jose";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const [path, expected, algorithm] = process.argv.slice(2);
const published = JSON.parse(readFileSync(path, "utf8"));
const keys = createLocalJWKSet(published);

// This is all that a relying party has to write.
const check = (token, more = {}) =>
  jwtVerify(token, keys, {
    algorithms: ["ES256", "EdDSA"],
    typ: "qwed-attestation+jwt",
    requiredClaims: ["iss", "sub", "iat", "exp", "jti"],
    ...more,
  });
const fail = (reason) => {
  console.error(reason);
  process.exit(1);
};
const isRefused = (token, more) =>
  check(token, more).then(
    () => false,
    () => true,
  );

let tokens = 0;
let changed = 0;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [token] = line.split("\t");
  if (expected === "unknown") {
    if (!(await isRefused(token))) fail("jose accepted a token of a key that is not in the set");
    tokens += 1;
    continue;
  }
  const { payload, protectedHeader } = await check(token);
  if (protectedHeader.alg !== algorithm) fail("another algorithm");
  if (payload.qwed.version !== "1.0") fail("another version");
  if (!(await isRefused(token, { currentDate: new Date(payload.exp * 1000) }))) fail("jose accepted it at its end");
  if (await isRefused(token, { currentDate: new Date(payload.exp * 1000 - 1000) })) fail("jose refused it before");
  tokens += 1;
  for (let position = 0; position < token.length; position += 1) {
    // The highest of six bits: it belongs to a byte at every position.
    const other = token[position] === "." ? "A" : alphabet[alphabet.indexOf(token[position]) ^ 32];
    if (!(await isRefused(token.slice(0, position) + other + token.slice(position + 1))))
      fail(`jose accepted a token with a changed byte at ${position}`);
    changed += 1;
  }
}
if (tokens === 0) fail("no tokens");
console.log(`jose on ${process.version}: ${tokens} ${algorithm} ${expected}, ${changed} with a changed byte refused`);
