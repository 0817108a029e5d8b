// Targets that keep something: analytics, customer records, tickets.
import type { Template } from './templates.ts';

export const RECORDS: readonly Template[] = [
  {
    id: 'analytics-ingest',
    category: 'data',
    title: 'Send an event to an analytics ingest endpoint',
    description:
      'Sends one event with an id of its own to an ingest endpoint, which drops repeats by that id, so it may be retried.',
    tags: ['analytics', 'event', 'ingest', 'data'],
    searchPhrases: [
      'send an analytics event from an agent',
      'ingest one event over HTTPS with proof',
      'record a conversion by webhook',
    ],
    exampleRequest: {
      url: 'https://ingest.example.com/v1/events',
      method: 'POST',
      headers: { 'x-write-key': 'YOUR-WRITE-KEY' },
      body: { id: 'evt-90211', name: 'report.generated', at: '2026-01-02T03:04:05Z' },
      idempotencyKey: 'evt-90211',
      retry: { attempts: 3, backoffMs: 250 },
    },
    buyerValue: 'An event that a third party can check was sent, and when.',
    targetOwnerValue: 'A write key of few rights is enough; no other access is handed out.',
    evidence: 'The analytics store holds one event with this id.',
  },
  {
    id: 'crm-record-update',
    category: 'business-workflows',
    title: 'Update a CRM record',
    description: 'Changes one record of a CRM by PATCH: the same change made twice leaves the same record.',
    tags: ['crm', 'sales', 'contact', 'update'],
    searchPhrases: [
      'update a CRM contact from an agent',
      'change a deal stage by webhook',
      'CRM update with a signed receipt',
    ],
    exampleRequest: {
      url: 'https://crm.example.com/api/contacts/CONTACT-ID',
      method: 'PATCH',
      headers: { authorization: 'Bearer SHORT-LIVED-CRM-TOKEN' },
      body: { stage: 'qualified', nextStep: '2026-01-09' },
      idempotencyKey: 'contact-317-qualified',
      retry: { attempts: 2 },
    },
    buyerValue: 'A changed record, and a receipt of the call that changed it.',
    targetOwnerValue: 'Field changes by agents are attributable to a receipt.',
    evidence: 'The record shows the new values.',
  },
  {
    id: 'ticket-create',
    category: 'business-workflows',
    title: 'Open a ticket',
    description:
      'Opens one ticket in a help desk or tracker. An external id in the body lets the tracker refuse a second one.',
    tags: ['ticket', 'support', 'issue', 'help-desk'],
    searchPhrases: [
      'open a support ticket from an agent',
      'create an issue by webhook once',
      'prove that a ticket was filed',
    ],
    exampleRequest: {
      url: 'https://tickets.example.com/api/tickets',
      method: 'POST',
      headers: { authorization: 'Bearer SHORT-LIVED-TICKET-TOKEN' },
      body: { externalId: 'task-5521', subject: 'Export job fails for tenant 12', priority: 'high' },
      idempotencyKey: 'task-5521-ticket',
    },
    buyerValue: 'A ticket filed once however often the agent restarts: a repeat with the key is a replay.',
    targetOwnerValue: 'No double tickets from agents that retry.',
    evidence: 'The tracker shows one ticket with this external id.',
  },
];
