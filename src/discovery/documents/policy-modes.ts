// The target policy modes, and the one that this deployment uses.

import { type Static, Type } from '@sinclair/typebox';
import { Text } from '#src/discovery/document.ts';
import type { Facts } from '#src/discovery/facts.ts';
import type { PolicyMode } from '#src/domain/destination/policy.ts';
import { Closed } from '#src/domain/schema-parts.ts';

export const PolicyModes = Type.Array(
  Closed({
    id: Text,
    status: Text,
    selected: Type.Boolean({ description: 'The mode in force here.' }),
    title: Text,
    description: Text,
    bestFor: Text,
  }),
);

const MODES = {
  'open-public-https': {
    status: 'active',
    title: 'Open public HTTPS',
    description: 'Any public HTTPS target may be called; localhost and private networks remain blocked.',
    bestFor: 'Agents whose targets are not known in advance.',
  },
  'blocklist-quota': {
    status: 'active',
    title: 'Block list and quota',
    description:
      'The open mode, with known bad target hosts blocked and repeated traffic to the same target host throttled.',
    bestFor: 'Public deployments that protect targets from abuse.',
  },
  allowlist: {
    status: 'supported',
    title: 'Allow list',
    description: 'Execution is restricted to approved target hosts.',
    bestFor: 'Teams that let their agents reach known endpoints only.',
  },
} as const satisfies Readonly<Record<PolicyMode, unknown>>;

/** The short name of a mode: the open one is the preset `open`. */
export const policyPreset = (mode: PolicyMode) => (mode === 'open-public-https' ? 'open' : mode);

/** `status` describes the software; `selected` is true for the mode that is in force here. */
export function policyModes({ policyMode }: Facts): Static<typeof PolicyModes> {
  const ids = ['open-public-https', 'blocklist-quota', 'allowlist'] as const;
  return ids.map((id) => ({ id, selected: id === policyMode, ...MODES[id] }));
}
