package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// helpError is the answer to --help: what a command takes, and its options.
type helpError struct {
	arguments string
	options   *flag.FlagSet
}

// Error implements error.
func (helpError) Error() string { return flag.ErrHelp.Error() }

// Unwrap makes it what the flag package says when it is asked for help.
func (helpError) Unwrap() error { return flag.ErrHelp }

// shellCommand is a command as a shell completes it, and a manual lists it.
type shellCommand struct {
	name, does string   // the name may be of two words
	arguments  []string // what stands for each, "FILE", or the words that it can be, "low|high"
	options    []shellOption
}

// shellOption is an option with what stands for its value, which is empty
// where it has none.
type shellOption struct{ name, does, value string }

// describe makes a command of what it answers to --help.
func describe(name, does string, answered error) (shellCommand, error) {
	var help helpError
	if !errors.As(answered, &help) {
		return shellCommand{}, fmt.Errorf("%s does not tell its options: %w", name, answered)
	}
	c := shellCommand{name: name, does: does, arguments: strings.Fields(help.arguments)}
	help.options.VisitAll(func(f *flag.Flag) {
		value, does := flag.UnquoteUsage(f)
		if b, is := f.Value.(interface{ IsBoolFlag() bool }); is && b.IsBoolFlag() {
			value = ""
		}
		if strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") == "" && value != "" {
			value = strings.ToUpper(value)
		}
		c.options = append(c.options, shellOption{"--" + f.Name, does, value})
	})
	return c, nil
}

// shellNames are the shells that scripts are written for.
const shellNames = "bash|zsh|fish"

// writeCompletion writes what has a shell complete a program's command lines.
func writeCompletion(out io.Writer, shell, program string, commands []shellCommand) error {
	script, known := map[string]func(string, []shellCommand) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
	if !known {
		return fmt.Errorf("there is no script for %q; it is one of %s", shell, strings.ReplaceAll(shellNames, "|", ", "))
	}
	_, err := io.WriteString(out, script(program, commands))
	return err
}

// bareWord is what is to be typed for an argument, without its brackets.
func bareWord(argument string) string { return strings.Trim(argument, "[].") }

// isChoice reports whether what stands for an argument is what is to be typed,
// and no name for it, which is in capitals.
func isChoice(kind string) bool { return kind != "" && kind == strings.ToLower(kind) }

// firstWords are the commands, the first word of those that have two.
func firstWords(commands []shellCommand) (words []string) {
	for _, c := range commands {
		if first, _, _ := strings.Cut(c.name, " "); !slices.Contains(words, first) {
			words = append(words, first)
		}
	}
	return words
}

// secondWords are those that follow a first.
func secondWords(commands []shellCommand, first string) (words []string) {
	for _, c := range commands {
		if second, is := strings.CutPrefix(c.name, first+" "); is {
			words = append(words, second)
		}
	}
	return words
}

// robotIDs lists the robots of the appliance of this machine and those of their
// names that are one word, or nothing.
const robotIDs = `timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p'`

const bashFrame = `# bash completion for @program@; written by: @program@ completion bash
_@function@() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} first=2 at=0 i kind= options= valued= arguments=()
	COMPREPLY=()
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "@words@" -- "$cur"))
		return
	fi
@second@	case $command in
@commands@	*) return ;;
	esac
	case " $valued " in
	*" $prev "*)
		case "$command $prev" in
@values@		esac
		;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$options" -- "$cur"))
			return
		fi
		for ((i = first; i < COMP_CWORD; i++)); do
			case " $valued " in
			*" ${COMP_WORDS[i]} "*) ((++i)); [[ ${COMP_WORDS[i]} == = ]] && ((++i)) ;;
			*) [[ ${COMP_WORDS[i]} == -* ]] || ((++at)) ;;
			esac
		done
		kind=${arguments[at]}
		;;
	esac
	case $kind in
	ROBOT*) COMPREPLY=($(compgen -W "$(@robots@)" -- "$cur")) ;;
	DIR) COMPREPLY=($(compgen -d -- "$cur")) ;;
	FILE*) COMPREPLY=($(compgen -f -- "$cur")) ;;
	[a-z0-9]*) COMPREPLY=($(compgen -W "${kind//|/ }" -- "$cur")) ;;
	esac
}
complete -o filenames -F _@function@ @program@
`

func bashScript(program string, commands []shellCommand) string {
	var cases, values, second strings.Builder
	for _, c := range commands {
		var all, valued, arguments []string
		for _, o := range c.options {
			all = append(all, o.name)
			if o.value != "" {
				valued = append(valued, o.name)
				fmt.Fprintf(&values, "\t\t%s) kind=%s ;;\n", shellQuoted(c.name+" "+o.name), shellQuoted(o.value))
			}
		}
		for _, a := range c.arguments {
			arguments = append(arguments, shellQuoted(bareWord(a)))
		}
		fmt.Fprintf(&cases, "\t%s) options=%s valued=%s arguments=(%s) ;;\n", shellQuoted(c.name), shellQuoted(strings.Join(all, " ")),
			shellQuoted(strings.Join(valued, " ")), strings.Join(arguments, " "))
	}
	for _, first := range firstWords(commands) {
		if words := secondWords(commands, first); len(words) > 0 {
			fmt.Fprintf(&second,
				"\tif [[ $command == %s ]]; then\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\tCOMPREPLY=($(compgen -W %s -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n\t\tcommand=\"$command ${COMP_WORDS[2]}\" first=3\n\tfi\n",
				first, shellQuoted(strings.Join(words, " ")))
		}
	}
	return strings.NewReplacer("@program@", program, "@function@", strings.ReplaceAll(program, "-", "_"), "@words@",
		strings.Join(firstWords(commands), " "),
		"@second@", second.String(), "@commands@", cases.String(), "@values@", values.String(), "@robots@", robotIDs).Replace(bashFrame)
}

// shellQuoted is a text as shells read it.
func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func zshScript(program string, commands []shellCommand) string {
	var b strings.Builder
	function := "_" + program // as the file is called
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion for %s; written by: %s completion zsh\n%s_robots() { compadd -- $(%s) }\n%s() {\n", program,
		program, program, function, robotIDs, function)
	described := func(indent string, of []shellCommand) {
		fmt.Fprintf(&b, "%slocal -a commands=(\n", indent)
		for _, c := range of {
			fmt.Fprintf(&b, "%s\t%s\n", indent, shellQuoted(strings.ReplaceAll(c.name, ":", `\:`)+":"+c.does))
		}
		fmt.Fprintf(&b, "%s)\n%s_describe command commands\n", indent, indent)
	}
	var firsts []shellCommand
	for _, name := range firstWords(commands) {
		at := slices.IndexFunc(commands, func(c shellCommand) bool { return c.name == name || strings.HasPrefix(c.name, name+" ") })
		firsts = append(firsts, shellCommand{name: name, does: commands[at].does})
	}
	b.WriteString("\tif (( CURRENT == 2 )); then\n")
	described("\t\t", firsts)
	b.WriteString("\t\treturn\n\tfi\n\tshift words\n\t(( CURRENT-- ))\n")
	for _, first := range firsts {
		if words := secondWords(commands, first.name); len(words) > 0 {
			fmt.Fprintf(&b,
				"\tif [[ $words[1] == %s ]]; then\n\t\tif (( CURRENT == 2 )); then\n\t\t\tcompadd -- %s\n\t\t\treturn\n\t\tfi\n\t\twords[2]=\"$words[1] $words[2]\"\n\t\tshift words\n\t\t(( CURRENT-- ))\n\tfi\n",
				first.name, strings.Join(words, " "))
		}
	}
	b.WriteString("\tcase $words[1] in\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "\t%s) _arguments", shellQuoted(c.name))
		for _, o := range c.options {
			fmt.Fprintf(&b, " \\\n\t\t%s", shellQuoted("*"+o.name+zshValue(function, o)))
		}
		for i, a := range c.arguments {
			fmt.Fprintf(&b, " \\\n\t\t%s", shellQuoted(fmt.Sprintf("%d:%s:%s", i+1, zshText(bareWord(a)), zshAction(function, bareWord(a)))))
		}
		b.WriteString(" ;;\n")
	}
	fmt.Fprintf(&b, "\tesac\n}\nif [[ $funcstack[1] == %s ]]; then\n\t%s \"$@\"\nelse\n\tcompdef %s %s\nfi\n", function, function, function, program)
	return b.String()
}

// zshText is free of what _arguments takes for its own.
func zshText(s string) string {
	return strings.NewReplacer(":", `\:`, "[", `\[`, "]", `\]`, `\`, `\\`).Replace(s)
}

func zshValue(function string, o shellOption) string {
	if o.value == "" {
		return "[" + zshText(o.does) + "]"
	}
	return "=[" + zshText(o.does) + "]:" + zshText(o.value) + ":" + zshAction(function, o.value)
}

func zshAction(function, kind string) string {
	switch {
	case strings.HasPrefix(kind, "ROBOT"):
		return function + "_robots"
	case kind == "DIR":
		return "_files -/"
	case strings.HasPrefix(kind, "FILE"):
		return "_files"
	case isChoice(kind):
		return "(" + strings.ReplaceAll(kind, "|", " ") + ")"
	}
	return " "
}

func fishScript(program string, commands []shellCommand) string {
	var b strings.Builder
	function := "__" + strings.ReplaceAll(program, "-", "_") + "_robots"
	fmt.Fprintf(&b, "# fish completion for %s; written by: %s completion fish\nfunction %s\n\t%s\nend\ncomplete -c %s -f\n", program, program,
		function, robotIDs, program)
	for _, c := range commands {
		first, second, two := strings.Cut(c.name, " ")
		seen := "__fish_seen_subcommand_from " + first
		if two {
			fmt.Fprintf(&b, "complete -c %s -n %s -a %s -d %s\n", program,
				shellQuoted(seen+"; and not __fish_seen_subcommand_from "+strings.Join(secondWords(commands, first), " ")), second,
				shellQuoted(c.does))
			seen += "; and __fish_seen_subcommand_from " + second
		}
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", program, first, shellQuoted(c.does))
		for _, o := range c.options {
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s -d %s%s\n", program, shellQuoted(seen), strings.TrimPrefix(o.name, "--"), shellQuoted(o.does),
				fishValue(function, o.value))
		}
		for _, a := range c.arguments {
			if value := fishValue(function, bareWord(a)); value != " -x" {
				fmt.Fprintf(&b, "complete -c %s -n %s%s\n", program, shellQuoted(seen), strings.TrimPrefix(strings.Replace(value, " -r", "", 1),
					" -x"))
			}
		}
	}
	return b.String()
}

func fishValue(function, kind string) string {
	switch {
	case kind == "":
		return ""
	case strings.HasPrefix(kind, "ROBOT"):
		return " -x -a '(" + function + ")'"
	case kind == "DIR", strings.HasPrefix(kind, "FILE"):
		return " -r -F"
	case isChoice(kind):
		return " -x -a " + shellQuoted(strings.ReplaceAll(kind, "|", " "))
	}
	return " -x"
}
