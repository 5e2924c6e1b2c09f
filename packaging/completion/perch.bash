# bash completion for perch; written by: perch completion bash
_perch() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} first=2 at=0 i kind= options= valued= arguments=()
	COMPREPLY=()
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "serve check-config doctor devices say notify adopt token forget robot backup restore completion version" -- "$cur"))
		return
	fi
	if [[ $command == robot ]]; then
		if ((COMP_CWORD == 2)); then
			COMPREPLY=($(compgen -W 'show rename set' -- "$cur"))
			return
		fi
		command="$command ${COMP_WORDS[2]}" first=3
	fi
	case $command in
	'serve') options='--config --data --listen --local --log-level --new-database' valued='--config --data --listen --local --log-level' arguments=() ;;
	'check-config') options='' valued='' arguments=('FILE') ;;
	'doctor') options='--config --data --show-secrets' valued='--config --data' arguments=() ;;
	'devices') options='--data --token-file --url' valued='--data --token-file --url' arguments=() ;;
	'say') options='--data --token-file --url' valued='--data --token-file --url' arguments=('ROBOT' 'TEXT') ;;
	'notify') options='--data --expires --robot --silent --token-file --urgency --url' valued='--data --expires --robot --token-file --urgency --url' arguments=('TEXT') ;;
	'adopt') options='--data --replace --token-file --url' valued='--data --token-file --url' arguments=('ROBOT|CODE') ;;
	'token') options='--client --data --json --token-file --url' valued='--client --data --token-file --url' arguments=('ROBOT') ;;
	'forget') options='--data --strangers --token-file --url' valued='--data --token-file --url' arguments=('ROBOT|--strangers') ;;
	'robot show') options='--data --token-file --url' valued='--data --token-file --url' arguments=('ROBOT') ;;
	'robot rename') options='--data --token-file --url' valued='--data --token-file --url' arguments=('ROBOT' 'NAME') ;;
	'robot set') options='--data --token-file --url' valued='--data --token-file --url' arguments=('ROBOT' 'KEY=VALUE') ;;
	'backup') options='--data --force --token-file --url' valued='--data --token-file --url' arguments=('FILE') ;;
	'restore') options='--data --restart --token-file --url' valued='--data --token-file --url' arguments=('FILE') ;;
	'completion') options='' valued='' arguments=('bash|zsh|fish') ;;
	'version') options='' valued='' arguments=() ;;
	*) return ;;
	esac
	case " $valued " in
	*" $prev "*)
		case "$command $prev" in
		'serve --config') kind='FILE' ;;
		'serve --data') kind='DIR' ;;
		'serve --listen') kind='ADDRESS' ;;
		'serve --local') kind='ADDRESS' ;;
		'serve --log-level') kind='debug|info|warn|error' ;;
		'doctor --config') kind='FILE' ;;
		'doctor --data') kind='DIR' ;;
		'devices --data') kind='DIR' ;;
		'devices --token-file') kind='FILE' ;;
		'devices --url') kind='URL' ;;
		'say --data') kind='DIR' ;;
		'say --token-file') kind='FILE' ;;
		'say --url') kind='URL' ;;
		'notify --data') kind='DIR' ;;
		'notify --expires') kind='TIME' ;;
		'notify --robot') kind='ROBOT' ;;
		'notify --token-file') kind='FILE' ;;
		'notify --urgency') kind='low|normal|high' ;;
		'notify --url') kind='URL' ;;
		'adopt --data') kind='DIR' ;;
		'adopt --token-file') kind='FILE' ;;
		'adopt --url') kind='URL' ;;
		'token --client') kind='ID' ;;
		'token --data') kind='DIR' ;;
		'token --token-file') kind='FILE' ;;
		'token --url') kind='URL' ;;
		'forget --data') kind='DIR' ;;
		'forget --token-file') kind='FILE' ;;
		'forget --url') kind='URL' ;;
		'robot show --data') kind='DIR' ;;
		'robot show --token-file') kind='FILE' ;;
		'robot show --url') kind='URL' ;;
		'robot rename --data') kind='DIR' ;;
		'robot rename --token-file') kind='FILE' ;;
		'robot rename --url') kind='URL' ;;
		'robot set --data') kind='DIR' ;;
		'robot set --token-file') kind='FILE' ;;
		'robot set --url') kind='URL' ;;
		'backup --data') kind='DIR' ;;
		'backup --token-file') kind='FILE' ;;
		'backup --url') kind='URL' ;;
		'restore --data') kind='DIR' ;;
		'restore --token-file') kind='FILE' ;;
		'restore --url') kind='URL' ;;
		esac
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
	ROBOT*) COMPREPLY=($(compgen -W "$(timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p')" -- "$cur")) ;;
	DIR) COMPREPLY=($(compgen -d -- "$cur")) ;;
	FILE*) COMPREPLY=($(compgen -f -- "$cur")) ;;
	[a-z0-9]*) COMPREPLY=($(compgen -W "${kind//|/ }" -- "$cur")) ;;
	esac
}
complete -o filenames -F _perch perch
