// `/robots.txt` (RFC 9309). Nothing is kept from crawlers, records neither: agents read with fetchers that heed this
// file, and a receipt that they may not look at proves nothing to them. Records show nothing private, and those that
// have lapsed answer 404, which takes them out of an index.

import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES } from '#src/discovery/routes.ts';
import { addressOf } from './document-parts.ts';

export const robotsText = (
  facts: Facts,
): string => `# Guide for language models: ${addressOf(facts, ROUTES.llms)}
# All documents: ${addressOf(facts, ROUTES.discovery)}
User-agent: *
Allow: /
`;
