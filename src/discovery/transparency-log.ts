// What the transparency log promises and what it does not, and its addresses.

import { addressOf } from '#src/discovery/documents/document-parts.ts';
import { TRANSPARENCY } from '../domain/limits.ts';
import type { Facts } from './facts.ts';
import { pathTemplate } from './route-facts.ts';
import { ROUTES } from './routes.ts';

export const transparencyLogTold = (facts: Facts) => ({
  format: 'C2SP tlog-tiles, tlog-checkpoint and tlog-proof over a Merkle tree of RFC 6962',
  mmdSeconds: TRANSPARENCY.mmdSeconds,
  checkpointMs: TRANSPARENCY.checkpointMs,
  witnessing: 'unwitnessed',
  checkpoint: addressOf(facts, ROUTES.logCheckpoint),
  key: addressOf(facts, ROUTES.logKey),
  tiles: addressOf(facts, ROUTES.logTile),
  proof: addressOf(facts, ROUTES.logProof),
  consistency: `${addressOf(facts, ROUTES.logConsistency)}{?from,to}`,
  rules: RULES,
});

const RULES = [
  'Every receipt and every change of keys is a leaf of one tree that only grows: of a receipt the SHA-256 of its JWS, so that nobody reads payers or targets in it.',
  `A receipt is in a checkpoint at most mmdSeconds after its issue, mostly within checkpointMs. Until then the check receipt_logged is ok with details.pending true; a later one that is not in it fails.`,
  'Checkpoints are signed by a key of their own, of purpose checkpoint in the key set. Keep one: each later one must be consistent with it, or history was rewritten.',
  'Unwitnessed: no witness cosigns checkpoints yet. A relay that shows one log to you and another to others is caught only by comparing checkpoints, and a wrong time of issue is not caught.',
  `It shows that a receipt was neither dropped nor exchanged; what the target did it does not show. A relay without a checkpoint key keeps no log: ${pathTemplate(ROUTES.logCheckpoint.path)} is 404 there, and reports have no check receipt_logged.`,
] as const;
