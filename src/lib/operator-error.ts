/**
 * An error that the operator can mend: the message names the file, the variable or the part, and what to do. A process that
 * it ends prints it on one line. Any other error that ends a process is a defect, and is printed with its stack.
 */
export class OperatorError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
