// Paid calls.
import type { Facts } from '../facts.ts';
import { ROUTES } from '../routes.ts';
import type { SnippetGroup } from '../snippets.ts';

export function paidCall({ baseUrl, offer }: Facts): SnippetGroup {
  return {
    id: 'paid-call',
    title: 'One paid call',
    description: 'Execute one webhook and get a signed receipt.',
    snippets: [
      {
        id: 'curl-execute',
        title: 'Execute one webhook with curl',
        language: 'shell',
        description: `Where payment is enforced this answers 402 with the terms (${offer.price}); in demo mode it executes.`,
        code: `curl -sS ${baseUrl}${ROUTES.execute.path} \\
  -H 'content-type: application/json' \\
  -d '{"url":"https://example.com/hook","body":{"event":"order.paid","order":17},"idempotencyKey":"order-17"}'
`,
      },
      {
        id: 'curl-decide',
        title: 'Decide before paying, with curl',
        language: 'shell',
        description: 'Free: judges the action against a buyer policy and recommends whether to pay.',
        code: `curl -sS ${baseUrl}${ROUTES.decide.path} \\
  -H 'content-type: application/json' \\
  -d '{"action":{"url":"https://example.com/hook","body":{"event":"order.paid","order":17},"idempotencyKey":"order-17"},"buyerPolicy":{"maxPriceUsd":"0.01"}}'
`,
      },
    ],
  };
}
