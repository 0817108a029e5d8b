// How secrets are handled: what to send, what never to send, what is stored, and who sees it.
import { addressOf, openDocument } from '#src/discovery/document.ts';
import { NEVER_SEND } from '#src/discovery/guidance.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { secretStorage } from './free-surfaces.ts';

export const secretsPolicy = openDocument([ROUTES.secretsPolicy], (facts) => ({
  ...secretStorage,
  send: Object.entries(SEND).map(([what, how]) => ({ what, how })),
  neverSend: [
    ...NEVER_SEND,
    'passwords of people, or anything that gives access to more than the one target',
  ],
  stored: STORED,
  notStored: NOT_STORED,
  shownTo: Object.entries(SHOWN_TO).map(([who, sees]) => ({ who, sees })),
  callerDuties: CALLER_DUTIES,
  keys: addressOf(facts, ROUTES.jwks),
}));

const SEND = {
  'Target-owned webhook secrets':
    'As part of url, if the target works that way (chat and automation hooks), or in a header that the target defines.',
  'Short-lived per-request credentials':
    'In headers, for instance authorization: Bearer with a short-lived token that has few rights.',
  'Signatures over your own body':
    'In a header of the target, or as the complete webhook-id, webhook-timestamp and webhook-signature, which are then sent instead of the relay’s.',
};

const STORED = [
  'Salted commitments (SHA-256) of the url, its origin, the sorted header names, the request body hash, the idempotencyKey, the response body hash, and of certificate and address of each attempt: the value cannot be guessed from them without the salt.',
  'A keyed hash (HMAC) of the complete request, to recognise repeats; also of the idempotencyKey and of the action of a decision.',
  'Method, times, statuses, sizes, error categories, phases and TLS version of each attempt.',
  'Of a payment: scheme, network, asset, amount, payTo, payer, nonce, expiry, transaction, and a hash of the payload.',
  'The client address: counted for rate limits, in memory or under a keyed hash, for at most a day.',
  'Of a decision: the buyer policy, its facts, and the recommendation.',
];

const NOT_STORED = [
  'The URL and any part of it, the host name included',
  'Header names and values',
  'Request and response bodies, and response headers (except the delay of a Retry-After)',
  'The idempotencyKey itself',
  'The payment signature and the payment header',
  'Any of these in logs, metrics or traces',
];

const SHOWN_TO = {
  'The target':
    'What you send it, and the headers of the relay with its signature. Never the payment or payer: payment headers are stripped.',
  'The name servers that the relay queries': 'The host name of the target.',
  'The payment facilitator and the chain': 'The payment. Never the request.',
  'The caller':
    'The execution response with disclosures, which open the commitments. A replay opens those of the request only.',
  'Anyone with a job or receipt id':
    'Method, attempts, times, statuses and commitments; in a receipt also the payment with its payer, which the chain shows as well.',
  'The public lists of proofs and decisions':
    'That a call was made, and its outcome. No target, header, body, hash, key or payer.',
};

const CALLER_DUTIES = [
  'Keep disclosures as secret as the url: they reveal it.',
  'Put no secret into idempotencyKey, x-request-id or the texts of a handoff: they are not kept secret.',
  'Revoke at the target what you sent by mistake: the relay has nothing to delete.',
];
