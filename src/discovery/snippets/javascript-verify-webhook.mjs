// Verify a delivery at the target with JavaScript
// For the owner of a target: a function that verifies webhook-signature (Standard Webhooks, v1a) with the published keys, and that webhook-timestamp is at most 5 minutes from now. No package is needed.
// Needs no package: Node, Bun or Deno.
// `headers`: of fetch, Node or Express, names in any case. `body`: the bytes as they arrived, before any parser. A delivery that is repeated has the same `webhook-id`: store it to drop repeats.
import { Buffer } from 'node:buffer';
import { createPublicKey, verify } from 'node:crypto';

let [keys, loadedAt] = [[], -Infinity];

// At most once in 10 seconds; false: not yet again.
async function loadKeys() {
  if (Date.now() - loadedAt < 10_000) return false;
  const response = await fetch('https://relay.example/.well-known/jwks.json');
  [{ keys }, loadedAt] = [await response.json(), Date.now()];
  return true;
}

export async function verifyWebhook(headers, body) {
  const pairs = typeof headers.entries === 'function' ? [...headers.entries()] : Object.entries(headers);
  const lower = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]));
  const [id, time, signatures] = ['id', 'timestamp', 'signature'].map((name) => lower['webhook-' + name]);
  const at = Number(time);
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - at) <= 300)) return false; // 5 minutes
  const signed = Buffer.concat([Buffer.from(id + '.' + time + '.'), body]);
  const given = signatures.split(' ').filter((signature) => signature.startsWith('v1a,'));
  const isGenuine = () => given.some((signature) => usable(at).some((key) => fits(key, signature.slice(4))));
  const fits = (key, signature) =>
    verify(null, signed, createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64'));
  if (Date.now() - loadedAt > 60_000) await loadKeys();
  // A key that is not known yet may be newer than what was loaded.
  return isGenuine() || ((await loadKeys()) && isGenuine());
}

const usable = (at) =>
  keys.filter((key) => key.purpose === 'receipt' && key.revokedAt === undefined && at <= (key.exp ?? at));
