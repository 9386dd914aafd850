# SPDX-License-Identifier: MIT
# Completion of pted and pte for fish. The options are those that the program's own --help lists.

function __pted_options
    $argv --help 2>/dev/null </dev/null | string match -rg '^ +(?:-[hV], )?(--[a-z-]+)'
end

function __pte_command
    commandline -opc | string match -rg '^([a-z]+)$' | string match -v pte | head -n 1
end

# After the model `pte run` takes files of any kind.
function __pte_has_model
    test (__pte_command) = run
    and commandline -opc | string match -rq '\.pte$|^https?:|^unix:'
end

complete -c pted -k -a '(__fish_complete_suffix .pte)'
complete -c pted -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__pted_options pted)'
complete -c pte -n 'not string length -q (__pte_command)' -f \
    -a '(pte --help 2>/dev/null | string match -rg "^  ([a-z]+) ")'
complete -c pte -n 'string length -q (__pte_command); and not __pte_has_model' \
    -k -a '(__fish_complete_suffix .pte)'
complete -c pte -n 'string match -qr "^(ls|load|unload|ping|top|bench)\$" (__pte_command)' -f \
    -a 'http:// https:// unix:'
for option in token-file cacert cert key csv json-schema tokenizer
    complete -c pte -l $option -r
end
complete -c pte -n 'string match -q -- "-*" (commandline -ct)' -f \
    -a '(__pted_options pte (__pte_command))'
complete -c pte -l arrivals -x -a 'poisson fixed'
complete -c pte -l form -x -a 'binary json'
for program in pted pte
    complete -c $program -l device -x -a 'cpu vulkan auto'
    complete -c $program -l precision -x -a 'exact fast bf16'
end
complete -c pted -l shared-memory -x -a 'off unix loopback'
complete -c pted -l log-level -x -a 'error warning notice info debug'
complete -c pted -l log-requests -x -a 'errors all'
complete -c pte -l check -r -k -a '(__fish_complete_suffix .card.json)'
complete -c pted -l card -r -k -a '(__fish_complete_suffix .card.json)'
complete -c pted -l models -x -a '(__fish_complete_directories)'
