;;; pi-rpcd.el --- The pi coding agent in Emacs, through pi-rpcd  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools

;;; Commentary:

;; M-x pi-rpcd-prompt       prompts pi; its answer streams into a buffer of the project
;; M-x pi-rpcd-push-region  hands the region to pi, also while it works, and says when the model has got it
;; M-x pi-rpcd-abort        aborts the run
;;
;; Questions of pi's extensions are asked in the minibuffer.  Each project has a session of its own, which lives in the
;; daemon and goes on when Emacs ends.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'project)

(defgroup pi-rpcd nil "The pi coding agent." :group 'tools)

(defcustom pi-rpcd-command '("pi-rpcd" "connect" "--framing" "content-length")
  "The command that carries JSON-RPC to the daemon, which it starts if none runs."
  :type '(repeat string))

(defvar pi-rpcd--connection nil "The connection to the daemon, or nil.")
(defvar pi-rpcd--sessions (make-hash-table :test #'equal) "Session ids by directory.")
(defvar pi-rpcd--buffers (make-hash-table :test #'equal) "Buffers by session id.")

;;; The connection

(defun pi-rpcd--connect ()
  "Return the connection; make one if there is none."
  (unless (and pi-rpcd--connection (jsonrpc-running-p pi-rpcd--connection))
    (clrhash pi-rpcd--sessions)
    (setq pi-rpcd--connection
          (make-instance
           'jsonrpc-process-connection
           :name "pi-rpcd"
           :events-buffer-scrollback-size 0
           :notification-dispatcher #'pi-rpcd--on-notification
           :process (lambda ()
                      (make-process :name "pi-rpcd" :command pi-rpcd-command :connection-type 'pipe
                                    :coding 'utf-8-emacs-unix :noquery t
                                    :stderr (get-buffer-create "*pi-rpcd stderr*"))))))
  pi-rpcd--connection)

(defun pi-rpcd--request (method params)
  "Call METHOD with PARAMS and wait for its result."
  (jsonrpc-request (pi-rpcd--connect) method params :timeout 60))

(defun pi-rpcd--request-async (method params &optional done)
  "Call METHOD with PARAMS; DONE gets the result.  An error is shown."
  (jsonrpc-async-request
   (pi-rpcd--connect) method params :timeout 3600
   :success-fn (or done #'ignore)
   :error-fn (lambda (err) (message "pi-rpcd: %s" (plist-get err :message)))
   :timeout-fn (lambda () (message "pi-rpcd: no answer to %s" method))))

;;; Sessions and their buffers

(defun pi-rpcd--directory ()
  "Return the root of the project, or the directory of the buffer."
  (let ((project (project-current)))
    (directory-file-name
     (expand-file-name (if project (car (last (project-roots project))) default-directory)))))

(defun pi-rpcd--session ()
  "Return the id of this project's session.  The first use makes one and follows it."
  (pi-rpcd--connect)
  (let ((directory (pi-rpcd--directory)))
    (or (gethash directory pi-rpcd--sessions)
        (let ((id (plist-get (pi-rpcd--request :session/create
                                               `(:cwd ,directory :dialogPolicy (:kind "wait")))
                             :sessionId)))
          (puthash id (get-buffer-create (format "*pi: %s*" (file-name-nondirectory directory))) pi-rpcd--buffers)
          (pi-rpcd--request :session/subscribe `(:sessionId ,id :dialogs t))
          (puthash directory id pi-rpcd--sessions)))))

(defun pi-rpcd--insert (session-id text)
  "Append TEXT to the buffer of SESSION-ID; windows that show its end follow."
  (let ((buffer (gethash session-id pi-rpcd--buffers)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (let ((following (cl-remove-if-not (lambda (window) (= (window-point window) (point-max)))
                                           (get-buffer-window-list buffer nil t))))
          (save-excursion
            (goto-char (point-max))
            (insert text))
          (dolist (window following) (set-window-point window (point-max))))))))

;;; What the daemon tells

(defun pi-rpcd--on-notification (_connection method params)
  "Show what METHOD tells with PARAMS."
  (let ((id (plist-get params :sessionId)))
    (pcase method
      ('session/event (pi-rpcd--on-event id (plist-get params :event)))
      ('run/ended (pi-rpcd--insert id (format "\n-- %s\n\n" (plist-get params :outcome))))
      ('session/gap (pi-rpcd--insert id "\n-- something is missing here\n"))
      ;; Not within the process filter: the minibuffer waits for the user.
      ('dialog/opened (run-at-time 0 nil #'pi-rpcd--ask (plist-get params :dialog))))))

(defun pi-rpcd--on-event (id event)
  "Show pi's EVENT in the buffer of the session ID."
  (pcase (plist-get event :type)
    ("message_update"
     (let ((update (plist-get event :assistantMessageEvent)))
       (when (equal (plist-get update :type) "text_delta")
         (pi-rpcd--insert id (plist-get update :delta)))))
    ("tool_execution_start"
     (pi-rpcd--insert id (format "\n[%s]\n" (plist-get event :toolName))))
    ("extension_ui_request"
     (when (equal (plist-get event :method) "notify")
       (message "pi: %s" (plist-get event :message))))))

(defun pi-rpcd--ask (dialog)
  "Ask the user what DIALOG asks, and answer it; quitting dismisses it."
  (let* ((title (plist-get dialog :title))
         (answer
          (condition-case nil
              (pcase (plist-get dialog :method)
                ("confirm"
                 `(:confirmed ,(if (y-or-n-p (format "%s %s " title (or (plist-get dialog :message) ""))) t :json-false)))
                ("select"
                 `(:value ,(completing-read (format "%s: " title) (append (plist-get dialog :options) nil) nil t)))
                (_ `(:value ,(read-string (format "%s: " title) (plist-get dialog :prefill)))))
            (quit '(:cancelled t)))))
    (pi-rpcd--request-async :dialog/respond `(:dialogId ,(plist-get dialog :dialogId) :answer ,answer))))

;;; Commands

;;;###autoload
(defun pi-rpcd-prompt (text)
  "Prompt pi with TEXT.  While it works, the prompt waits for the end of the run."
  (interactive "sPrompt: ")
  (let ((id (pi-rpcd--session)))
    (pi-rpcd--insert id (format "> %s\n\n" text))
    (display-buffer (gethash id pi-rpcd--buffers))
    (pi-rpcd--request-async :session/prompt `(:sessionId ,id :text ,text :ifRunning "followUp"))))

;;;###autoload
(defun pi-rpcd-push-region (start end)
  "Hand the text from START to END to pi, and say when the model has got it.
The push is stored first: it survives the end of pi, of the daemon and of Emacs."
  (interactive "r")
  (let* ((id (pi-rpcd--session))
         (file (and buffer-file-name (file-relative-name buffer-file-name (pi-rpcd--directory))))
         (lines (format "%d-%d" (line-number-at-pos start) (line-number-at-pos end)))
         (content (format "Selected in %s, lines %s:\n\n%s" (or file (buffer-name)) lines
                          (buffer-substring-no-properties start end))))
    (message "pi-rpcd: on its way")
    (pi-rpcd--request-async
     :delivery/push
     `(:sessionId ,id :customType "editor.selection" :content ,content
       :details (:file ,(or file "") :lines ,lines) :until "delivered" :timeoutMs 3600000)
     (lambda (delivery) (message "pi-rpcd: %s" (plist-get delivery :state))))))

;;;###autoload
(defun pi-rpcd-abort ()
  "Abort what pi does in this project."
  (interactive)
  (pi-rpcd--request-async :session/abort `(:sessionId ,(pi-rpcd--session))))

(provide 'pi-rpcd)
;;; pi-rpcd.el ends here
