/**
 * Something unexpected that no call can report; it was ignored without harm. `push_failed` is for callers that push and
 * read no promise of the delivery.
 */
export type Diagnostic =
  | { readonly kind: "unparsable_frame"; readonly text: string; readonly error: unknown }
  | { readonly kind: "binary_frame"; readonly byteLength: number }
  | { readonly kind: "unexpected_message"; readonly message: unknown }
  | { readonly kind: "unknown_notification"; readonly method: string }
  | { readonly kind: "malformed_notification"; readonly method: string; readonly params: unknown }
  | { readonly kind: "push_failed"; readonly deliveryId: string; readonly error: unknown }
  | { readonly kind: "dialog_failed"; readonly dialogId: string; readonly error: unknown }
  | { readonly kind: "listener_failed"; readonly error: unknown };

export type OnDiagnostic = (diagnostic: Diagnostic) => void;

/** Wraps a listener so that its errors are ignored. Without a listener, diagnostics are dropped. */
export function guarded(listener: OnDiagnostic | undefined): OnDiagnostic {
  return (diagnostic) => {
    try {
      listener?.(diagnostic);
    } catch {
      // No listener is left that could report this error.
    }
  };
}
