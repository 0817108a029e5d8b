// Links in answers: absolute, from PUBLIC_BASE_URL alone, never from the request's Host.
import { Type } from '@sinclair/typebox';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { Closed, Link, Nullable } from '#src/domain/schema-parts.ts';

export type Links = ReturnType<typeof linksFrom>;

export function linksFrom(baseUrl: string) {
  const base = baseUrl.replace(/\/+$/, '');
  const to = ({ path }: RouteFacts) => {
    const [before = '', after = ''] = path.split(/:[A-Za-z]+/);
    return (id: string) => base + before + id + after;
  };
  return {
    at: (path: string) => `${base}${path}`,
    job: to(ROUTES.job),
    receipt: to(ROUTES.receipt),
    verifyJob: to(ROUTES.verifyJob),
    verifyReceipt: to(ROUTES.verifyReceipt),
    proof: to(ROUTES.proofPage),
    decision: to(ROUTES.decision),
    logProof: to(ROUTES.logProof),
  };
}

export const ProofLinks = Closed({
  job: Link,
  receipt: Nullable(Link),
  verifyJob: Link,
  verifyReceipt: Nullable(Link),
});

export const proofLinks = (links: Links, jobId: string, receiptId: string | null) => ({
  job: links.job(jobId),
  receipt: receiptId === null ? null : links.receipt(receiptId),
  verifyJob: links.verifyJob(jobId),
  verifyReceipt: receiptId === null ? null : links.verifyReceipt(receiptId),
});

export const JobLinks = Closed({
  ...ProofLinks.properties,
  proof: Link,
  decision: Type.Optional(Link),
});
export const ExecutionLinks = Closed({ ...JobLinks.properties, receipt: Link, verifyReceipt: Link });

/** Of a job or its receipt: the proof's, the page for people, the decision where there was one. */
export const jobLinks = (
  links: Links,
  jobId: string,
  receiptId: string | null,
  decisionId: string | null,
) => ({
  ...proofLinks(links, jobId, receiptId),
  proof: links.proof(jobId),
  ...(decisionId === null ? {} : { decision: links.decision(decisionId) }),
});
