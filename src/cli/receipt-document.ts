// The receipt in a source that the user named.
import { RECEIPT_FORMS, type ReceiptDocument, readReceiptDocument } from '../domain/receipt/document.ts';
import { CannotRun } from './exit.ts';

/** `name`: of the source, for messages. Throws `CannotRun` where there is no receipt in it. */
export function receiptDocumentIn(text: string, name: string): ReceiptDocument {
  const document = readReceiptDocument(text);
  if (document.kind === null) throw new CannotRun(`${name} ${document.problem}: ${RECEIPT_FORMS}`);
  return document;
}
