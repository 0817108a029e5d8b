// Verify the signature yourself with jose
// Needs no report: the receipt is a JWS, the keys are public. Keep both to verify the receipt without this service. Takes the receipt id as its argument; exits with 1 if the job failed.
// Run: npm install jose && node javascript-verify-offline.mjs rcpt_…
import process from 'node:process';
import { compactVerify, createLocalJWKSet } from 'jose';

async function get(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(response.status + ' ' + (await response.text()));
  return response.json();
}

const newest = async () => {
  const { proofs } = await get('https://relay.example/api/proofs/recent');
  return proofs.find(({ receiptId }) => receiptId !== null)?.receiptId;
};
const receiptId = process.argv[2] ?? (await newest());
if (!receiptId) throw new Error('nothing was executed yet');

const { jws } = await get('https://relay.example/api/receipts/' + receiptId);
const keys = await get('https://relay.example/.well-known/jwks.json');

// From here on no request is made to the service.
const { payload } = await compactVerify(jws, createLocalJWKSet(keys), { algorithms: ['EdDSA'] });
const receipt = JSON.parse(new TextDecoder().decode(payload));
if (receipt.receiptId !== receiptId) throw new Error('the receipt has another id');
console.log(
  'verified',
  receipt.receiptId,
  receipt.jobId,
  receipt.outcome.status,
  receipt.outcome.responseStatus,
);
// A failed job has a valid receipt, too.
if (receipt.outcome.status !== 'succeeded') process.exitCode = 1;
