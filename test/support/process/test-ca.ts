// The certificate authority of the tests: valid today, with the faults that a test requests.
import * as localCa from '#src/demo/certificates/local-ca.ts';

export type Identity = localCa.Identity;

export type LeafOptions = {
  /** DNS names (also `*.example.com`) and IP addresses. */
  readonly names: readonly string[];
  readonly commonName?: string;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
};

export type TestCa = {
  /** The root as PEM: the content of EGRESS_CA_FILE. */
  readonly pem: string;
  issue(options: LeafOptions): Identity;
};

const DAY_MS = 86_400_000;

export function makeTestCa(name = 'relay test root'): TestCa {
  const ca = localCa.makeLocalCa(name, validity());
  return { pem: ca.pem, issue: (options) => ca.issue({ ...validity(), ...options }) };
}

/** A self-signed certificate. */
export function makeSelfSigned(options: LeafOptions): Identity {
  return localCa.makeSelfSigned({ ...validity(), ...options });
}

/** Yesterday to a month from now. */
function validity() {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 30 * DAY_MS) };
}
