// Targets that start something: no-code automations and continuous integration.
import type { Template } from './templates.ts';

export const AUTOMATION: readonly Template[] = [
  {
    id: 'automation-catch-hook',
    category: 'automation',
    title: 'Start a no-code automation by its catch hook',
    description:
      'Sends one event to the catch hook of a no-code automation, which starts it. The hook URL is the credential.',
    tags: ['no-code', 'automation', 'catch-hook', 'trigger'],
    searchPhrases: [
      'trigger a no-code automation from an agent',
      'call a catch hook once with proof',
      'start a workflow by webhook and pay per call',
    ],
    exampleRequest: {
      url: 'https://automation.example.com/hooks/catch/YOUR-HOOK-ID',
      method: 'POST',
      body: { event: 'form.submitted', form: 'feedback', submission: 'sub-812' },
      idempotencyKey: 'feedback-sub-812',
    },
    buyerValue: 'Reaches whatever the automation connects to by one call, without an account at the relay.',
    targetOwnerValue: 'The automation gets one well-formed event, with a webhook-id to drop repeats by.',
    evidence: 'The history of the automation shows one run for this event.',
  },
  {
    id: 'automation-scenario-webhook',
    category: 'automation',
    title: 'Run a no-code scenario with data',
    description:
      'Hands one record to the webhook of a no-code scenario that passes it on, for instance as a row of a table.',
    tags: ['no-code', 'scenario', 'integration', 'record'],
    searchPhrases: [
      'send a record to a no-code scenario',
      'add a row through an automation webhook',
      'run an integration scenario once',
    ],
    exampleRequest: {
      url: 'https://scenarios.example.com/webhooks/YOUR-SCENARIO-ID',
      method: 'POST',
      body: { table: 'invoices', row: { invoice: 'INV-2041', amount: '120.00', currency: 'EUR' } },
      idempotencyKey: 'scenario-inv-2041',
    },
    buyerValue: 'One record handed over once, and a receipt to keep with the task.',
    targetOwnerValue: 'The hook can be revoked by its owner at any time; the relay keeps no copy of it.',
    evidence: 'The scenario shows one run, and the record stands once where it writes to.',
  },
  {
    id: 'ci-dispatch',
    category: 'developer-tools',
    title: 'Dispatch a CI workflow',
    description:
      'Calls the dispatch endpoint of a CI system with a short-lived token. A dispatch is not idempotent: it is tried once.',
    tags: ['ci', 'build', 'deploy', 'dispatch'],
    searchPhrases: [
      'trigger a CI workflow from an agent',
      'dispatch a build with a signed receipt',
      'start a deployment by webhook',
    ],
    exampleRequest: {
      url: 'https://ci.example.com/api/repos/OWNER/REPOSITORY/dispatches',
      method: 'POST',
      headers: { authorization: 'Bearer SHORT-LIVED-CI-TOKEN' },
      body: { event: 'agent-rebuild', ref: 'main' },
      idempotencyKey: 'rebuild-main-2026-01-02',
      retry: { attempts: 1 },
    },
    buyerValue: 'Proof that the build was asked for, by a token that need not outlive the call.',
    targetOwnerValue:
      'A receipt for the audit trail: when it was asked for, what was answered, and who paid.',
    evidence: 'The CI system shows one run for this dispatch.',
  },
];
