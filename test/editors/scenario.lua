-- A user of the plugin for Neovim. Prints a line of JSON for each step; the test compares them with what the model's
-- provider was sent.

local pi = require("pi_rpcd")
pi.command = vim.split(os.getenv("PI_RPCD_CONNECT"), "\n")

local function say(facts)
  io.stdout:write(vim.json.encode(facts) .. "\n")
end

local function wait(what, check)
  if not vim.wait(300000, check, 20) then
    io.stderr:write("waited in vain for " .. what .. "\n")
    vim.cmd("cquit 1")
  end
end

local notes = {}
vim.notify = function(text)
  table.insert(notes, text)
end
local function noted(pattern)
  return function()
    return #vim.tbl_filter(function(text) return text:match(pattern) end, notes) > 0
  end
end

-- The user takes the last of what is offered, and says yes where that is the question.
vim.ui.select = function(items, opts, on_choice)
  say({ question = opts.prompt })
  on_choice(items[1] == "yes" and "yes" or items[#items])
end

local function text()
  local buffer = pi.buffer()
  return buffer and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n") or ""
end

vim.cmd("edit notes.txt")
vim.cmd("PiPrompt Build it: Grüße 世界")
wait("the answer", function() return text():match("\n%-%- ") end)

vim.cmd("wincmd p")
vim.cmd("buffer notes.txt")
local delivered
pi.on_delivery = function(delivery) delivered = delivery.state end
vim.cmd("%PiPush")
wait("the receipt", function() return delivered ~= nil end)
say({ delivered = delivered })
wait("its answer", function() return text():match("\n%-%- .*\n%-%- ") end)

vim.cmd(
  'PiPrompt /ask [{"method":"select","title":"Which one?","options":["the first","the second"]},'
    .. '{"method":"confirm","title":"Sure?","text":"For good."}]'
)
wait("the extension's words", noted("the second"))

say({ buffer = text() })
say({ ended = true })
vim.cmd("qall!")
