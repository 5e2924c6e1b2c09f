package command

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Shells returns the shells that have a completion script.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion returns the command that prints a completion script for a program.
func Completion(program string) *cobra.Command {
	return &cobra.Command{
		Use:     "completion " + strings.Join(Shells(), "|"),
		Short:   "Print the script with which a shell completes these commands",
		Example: "source <(" + program + " completion bash)",
		RunE: func(c *cobra.Command, args []string) error {
			return WriteCompletion(c.OutOrStdout(), c.Root(), args[0])
		},
	}
}

// bashFallback defines two functions that the completion script for bash calls, if the package
// bash-completion, which normally defines them, is not installed.
const bashFallback = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
	_get_comp_words_by_ref() {
		read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
		[[ ${COMP_LINE:0:COMP_POINT} == *" " ]] && words+=("")
		cword=$((${#words[@]} - 1))
		cur=${words[cword]} prev=${words[cword - 1]}
	}
	_filedir() { COMPREPLY=($(compgen "$@" -- "$cur")); }
fi
`

// WriteCompletion writes the completion script for a shell: "zsh", "fish", or bash for any other value.
// The script runs the program to find the completions.
func WriteCompletion(w io.Writer, root *cobra.Command, shell string) error {
	switch shell {
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	}
	if err := root.GenBashCompletionV2(w, false); err != nil {
		return err
	}
	_, err := io.WriteString(w, bashFallback)
	return err
}
