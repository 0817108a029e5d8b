// Templates of the catalog: what a buyer sends for each typical kind of target, and what both sides gain by it.

import { DONE_WHEN, FAILED_VERIFIES } from '#src/discovery/completion.ts';
import { pathTemplate } from '#src/discovery/route-facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import type { WebhookRequest } from '#src/domain/job/webhook-request.ts';
import { AUTOMATION } from './templates-automation.ts';
import { MESSAGES } from './templates-messages.ts';
import { RECORDS } from './templates-records.ts';

export const CATEGORIES = [
  'automation',
  'business-workflows',
  'chatops',
  'data',
  'developer-tools',
  'ops',
] as const;
export type Category = (typeof CATEGORIES)[number];

/** `exampleRequest`: words in capitals are to be replaced, and so is the idempotencyKey: one for each task. */
export type Template = {
  readonly id: string;
  readonly category: Category;
  readonly title: string;
  readonly description: string;
  readonly tags: readonly string[];
  /** As a buyer would ask for it. */
  readonly searchPhrases: readonly string[];
  readonly exampleRequest: WebhookRequest;
  readonly buyerValue: string;
  readonly targetOwnerValue: string;
  /** What else than the receipt shows that it worked. */
  readonly evidence: string;
};

export function templates() {
  return [...MESSAGES, ...AUTOMATION, ...RECORDS].map(({ evidence, ...template }) => ({
    ...template,
    status: 'active',
    actionId: 'execute.webhook',
    paidRoute: ROUTES.execute.path,
    verification: [
      `Done only when ${DONE_WHEN}.`,
      `The report is GET ${pathTemplate(ROUTES.verifyReceipt.path)}. ${FAILED_VERIFIES}`,
      evidence,
    ],
  }));
}
