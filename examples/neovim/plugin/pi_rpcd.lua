-- :PiPrompt TEXT   prompts pi; its answer streams into a buffer
-- :[range]PiPush   hands lines to pi, also while it works, and says when the model has got them
-- :PiAbort         aborts the run
vim.api.nvim_create_user_command("PiPrompt", function(call)
  require("pi_rpcd").prompt(call.args)
end, { nargs = "+", desc = "Prompt pi" })

vim.api.nvim_create_user_command("PiPush", function(call)
  require("pi_rpcd").push(call.line1, call.line2)
end, { range = true, desc = "Hand lines to pi" })

vim.api.nvim_create_user_command("PiAbort", function()
  require("pi_rpcd").abort()
end, { desc = "Abort pi's run" })
