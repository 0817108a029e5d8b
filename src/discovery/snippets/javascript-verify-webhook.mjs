// Verify a delivery at the target with JavaScript
// For the owner of a target: a function that verifies webhook-signature (Standard Webhooks, v1a) with the published keys, and that webhook-timestamp is at most 5 minutes from now. No package is needed.
// Needs no package: Node, Bun or Deno.
// `body` is the bytes as they arrived. A delivery that is repeated has the same `webhook-id`: store it to drop repeats.
import { Buffer } from 'node:buffer';
import { createPublicKey, verify } from 'node:crypto';

export async function verifyWebhook(headers, body) {
  const [id, time, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    headers.get('webhook-' + name),
  );
  const at = Number(time);
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - at) <= 300)) return false; // 5 minutes
  const response = await fetch('https://relay.example/.well-known/jwks.json'); // may be cached for a minute
  const { keys } = await response.json();
  const usable = keys.filter(
    (key) => key.purpose === 'receipt' && key.revokedAt === undefined && at <= (key.exp ?? at),
  );
  const signed = Buffer.concat([Buffer.from(id + '.' + time + '.'), body]);
  const isValid = (key, signature) =>
    verify(null, signed, createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64'));
  const given = signatures.split(' ').filter((signature) => signature.startsWith('v1a,'));
  return given.some((signature) => usable.some((key) => isValid(key, signature.slice(4))));
}
