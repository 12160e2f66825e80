/**
 * Something odd that no call can report: it was ignored, and nothing is broken by it. `push_failed` is there for those
 * who push without looking at any promise of the delivery.
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

/** A listener that cannot hurt its caller. Without one, diagnostics are dropped. */
export function guarded(listener: OnDiagnostic | undefined): OnDiagnostic {
  return (diagnostic) => {
    try {
      listener?.(diagnostic);
    } catch {
      // A diagnostic about a failing diagnostic listener has nobody to go to.
    }
  };
}
