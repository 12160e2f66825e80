-- The pi coding agent in Neovim, through pi-rpcd. Neovim 0.7 or newer.
--
-- Each working directory has a session of its own, which lives in the daemon and goes on when Neovim ends.

local M = {}

--- The command that carries JSON-RPC to the daemon, which it starts if none runs.
M.command = { "pi-rpcd", "connect", "--framing", "content-length" }

--- Hears of every state that a push comes to; a plugin may replace it.
M.on_delivery = function(delivery)
  vim.notify("pi-rpcd: " .. delivery.state)
end

local client -- the connection, nil while there is none
local sessions = {} -- ids by working directory
local buffers = {} -- buffers by session id

local function complain(err)
  vim.notify("pi-rpcd: " .. (err.message or vim.inspect(err)), vim.log.levels.ERROR)
end

--- Appends text to a session's buffer; windows that show its last line follow.
local function append(id, text)
  local buffer = buffers[id]
  if not buffer or not vim.api.nvim_buf_is_valid(buffer) then return end
  local last = vim.api.nvim_buf_line_count(buffer)
  local following = vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] == last
  end, vim.fn.win_findbuf(buffer))
  local line = vim.api.nvim_buf_get_lines(buffer, last - 1, last, true)[1]
  vim.api.nvim_buf_set_text(buffer, last - 1, #line, last - 1, #line, vim.split(text, "\n", { plain = true }))
  for _, window in ipairs(following) do
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

local function request(method, params, done)
  client.request(method, params, function(err, result)
    if err then
      complain(err)
    elseif done then
      done(result)
    end
  end)
end

--- Asks the user what an extension of pi's asks. Leaving the question dismisses it.
local function ask(dialog)
  local function answer(value)
    request("dialog/respond", { dialogId = dialog.dialogId, answer = value or { cancelled = true } })
  end
  if dialog.method == "confirm" then
    local prompt = dialog.title .. (dialog.message and (" " .. dialog.message) or "")
    vim.ui.select({ "yes", "no" }, { prompt = prompt }, function(choice)
      answer(choice and { confirmed = choice == "yes" })
    end)
  elseif dialog.method == "select" then
    vim.ui.select(dialog.options, { prompt = dialog.title }, function(choice)
      answer(choice and { value = choice })
    end)
  else
    vim.ui.input({ prompt = dialog.title .. ": ", default = dialog.prefill }, function(text)
      answer(text and { value = text })
    end)
  end
end

local handlers = {
  ["session/event"] = function(params)
    local event = params.event
    if event.type == "message_update" and event.assistantMessageEvent.type == "text_delta" then
      append(params.sessionId, event.assistantMessageEvent.delta)
    elseif event.type == "tool_execution_start" then
      append(params.sessionId, "\n[" .. event.toolName .. "]\n")
    elseif event.type == "extension_ui_request" and event.method == "notify" then
      vim.notify("pi: " .. event.message)
    end
  end,
  ["run/ended"] = function(params)
    append(params.sessionId, "\n-- " .. params.outcome .. "\n\n")
  end,
  ["session/gap"] = function(params)
    append(params.sessionId, "\n-- something is missing here\n")
  end,
  ["dialog/opened"] = function(params)
    ask(params.dialog)
  end,
}

local function connect()
  if client then return end
  local dispatchers = {
    notification = function(method, params)
      local handler = handlers[method]
      if handler then handler(params) end
    end,
    on_exit = function()
      client, sessions = nil, {}
    end,
  }
  if vim.fn.has("nvim-0.10") == 1 then
    client = vim.lsp.rpc.start(M.command, dispatchers)
  else
    client = vim.lsp.rpc.start(M.command[1], vim.list_slice(M.command, 2), dispatchers)
  end
  if not client then error("pi-rpcd: " .. M.command[1] .. " could not be started") end
end

--- Calls back with the id of the working directory's session. The first use makes one and follows it.
local function with_session(use)
  connect()
  local cwd = vim.fn.getcwd()
  if sessions[cwd] then return use(sessions[cwd]) end
  request("session/create", { cwd = cwd, dialogPolicy = { kind = "wait" } }, function(session)
    local id = session.sessionId
    sessions[cwd] = id
    buffers[id] = vim.api.nvim_create_buf(true, true)
    vim.api.nvim_buf_set_name(buffers[id], "pi://" .. id)
    request("session/subscribe", { sessionId = id, dialogs = true }, function()
      use(id)
    end)
  end)
end

--- The buffer that a session's answers stream into.
function M.buffer()
  return buffers[sessions[vim.fn.getcwd()]]
end

--- Prompts pi. While it works, the prompt waits for the end of the run.
function M.prompt(text)
  with_session(function(id)
    append(id, "> " .. text .. "\n\n")
    if #vim.fn.win_findbuf(buffers[id]) == 0 then vim.cmd("vertical sbuffer " .. buffers[id]) end
    request("session/prompt", { sessionId = id, text = text, ifRunning = "followUp" })
  end)
end

--- Hands lines of the buffer to pi, also while it works, and says when the model has got them. The push is stored
--- first: it survives the end of pi, of the daemon and of Neovim.
function M.push(first, last)
  local name = vim.fn.expand("%:.")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, first - 1, last, true), "\n")
  with_session(function(id)
    request("delivery/push", {
      sessionId = id,
      customType = "editor.selection",
      content = ("Selected in %s, lines %d-%d:\n\n%s"):format(name, first, last, text),
      details = { file = name, lines = first .. "-" .. last },
      ["until"] = "delivered",
      timeoutMs = 3600000,
    }, M.on_delivery)
  end)
end

--- Aborts what pi does in the working directory.
function M.abort()
  with_session(function(id)
    request("session/abort", { sessionId = id })
  end)
end

return M
