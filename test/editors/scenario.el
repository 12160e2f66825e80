;;; scenario.el --- A user of pi-rpcd.el  -*- lexical-binding: t; -*-

;; Prints a line of JSON for each step; the test compares them with what the model's provider was sent.

(require 'json)
(require 'pi-rpcd)

(defun scenario-say (&rest facts)
  "Print the plist FACTS."
  (princ (concat (json-encode facts) "\n")))

(defun scenario-wait (what check)
  "Wait until CHECK returns something, and return it; WHAT says what that is."
  (let ((deadline (time-add nil 300)) found)
    (while (not (setq found (funcall check)))
      (when (time-less-p deadline nil) (error "Waited in vain for %s" what))
      (accept-process-output nil 0.1))
    found))

(defvar scenario-messages nil)
(advice-add 'message :before (lambda (format &rest args)
                               (when format (push (apply #'format format args) scenario-messages))))

(defun scenario-buffer ()
  "Return the text of the session's buffer."
  (with-current-buffer (gethash (pi-rpcd--session) pi-rpcd--buffers) (buffer-string)))

(setq pi-rpcd-command (split-string (getenv "PI_RPCD_CONNECT") "\n"))

;; The user answers each question.
(advice-add 'y-or-n-p :override (lambda (prompt) (scenario-say :question prompt) t))
(advice-add 'completing-read :override
            (lambda (prompt choices &rest _) (scenario-say :question prompt) (car (last choices))))

(pi-rpcd-prompt "Build it: Grüße 世界")
(scenario-wait "the answer" (lambda () (string-match-p "-- " (scenario-buffer))))

(find-file "notes.txt")
(set-mark (point-min))
(goto-char (point-max))
(pi-rpcd-push-region (point-min) (point-max))
(scenario-wait "the receipt" (lambda () (cl-find-if (lambda (text) (string-match-p "pi-rpcd: \\(delivered\\|answered\\)" text))
                                                   scenario-messages)))
(scenario-say :delivered t)
(scenario-wait "its answer" (lambda () (string-match-p "-- .*\n\n\\(.\\|\n\\)*-- " (scenario-buffer))))

(pi-rpcd-prompt "/ask [{\"method\":\"select\",\"title\":\"Which one?\",\"options\":[\"the first\",\"the second\"]},{\"method\":\"confirm\",\"title\":\"Sure?\",\"text\":\"For good.\"}]")
(scenario-wait "the extension's words" (lambda () (cl-find-if (lambda (text) (string-match-p "the second" text)) scenario-messages)))

(scenario-say :buffer (scenario-buffer))
(jsonrpc-shutdown pi-rpcd--connection)
(scenario-say :ended t)
