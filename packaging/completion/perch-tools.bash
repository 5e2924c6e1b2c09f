# bash completion for perch-tools; written by: perch-tools completion bash
_perch_tools() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} first=2 at=0 i kind= options= valued= arguments=()
	COMPREPLY=()
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "robot image flash nvs provision publish assets record hooks completion" -- "$cur"))
		return
	fi
	if [[ $command == hooks ]]; then
		if ((COMP_CWORD == 2)); then
			COMPREPLY=($(compgen -W 'install remove send' -- "$cur"))
			return
		fi
		command="$command ${COMP_WORDS[2]}" first=3
	fi
	case $command in
	'robot') options='--aec --crash --event --firmware --flash --framing --mac --mic --mode --ota --picture --robots --say --speaker --stay --transcript --upgrade --wake' valued='--aec --event --firmware --flash --framing --mac --mic --mode --ota --robots --say --speaker --transcript --wake' arguments=() ;;
	'image') options='--chip --json --slot' valued='--chip --slot' arguments=('FILE.bin') ;;
	'flash') options='--all --at --baud --board --boot --dry-run --port --save' valued='--at --baud --board --port' arguments=('FILE.bin') ;;
	'nvs') options='--delete --drop-damaged --json --new --ota --out --set --show-secrets --size' valued='--delete --ota --out --set --size' arguments=('FILE') ;;
	'provision') options='--ap --ota --password-file --portal --ssid --wifi' valued='--ap --ota --password-file --portal --ssid' arguments=() ;;
	'publish') options='--auto --board --hours --percent --signature --token-file --url' valued='--board --hours --percent --signature --token-file --url' arguments=('FILE.bin') ;;
	'assets') options='--check --name --reboot --robot --token-file --url' valued='--name --robot --token-file --url' arguments=('FILE.bin') ;;
	'record') options='--out --token-file --url' valued='--out --token-file --url' arguments=('ROBOT') ;;
	'hooks install') options='--key-file --settings --url --write' valued='--key-file --settings --url' arguments=('claude|codex') ;;
	'hooks remove') options='--settings' valued='--settings' arguments=('claude|codex') ;;
	'hooks send') options='--agent --key-file --url' valued='--agent --key-file --url' arguments=('state|permission') ;;
	'completion') options='' valued='' arguments=('bash|zsh|fish') ;;
	*) return ;;
	esac
	case " $valued " in
	*" $prev "*)
		case "$command $prev" in
		'robot --aec') kind='off|device|server' ;;
		'robot --event') kind='NAME=JSON' ;;
		'robot --firmware') kind='2.1|2.2.4|2.4|2.5|dotty' ;;
		'robot --flash') kind='FILE' ;;
		'robot --framing') kind='1|2|3' ;;
		'robot --mac') kind='MAC' ;;
		'robot --mic') kind='FILE' ;;
		'robot --mode') kind='auto|manual|realtime' ;;
		'robot --ota') kind='URL' ;;
		'robot --robots') kind='N' ;;
		'robot --say') kind='TEXT' ;;
		'robot --speaker') kind='FILE' ;;
		'robot --transcript') kind='FILE' ;;
		'robot --wake') kind='TEXT' ;;
		'image --chip') kind='CHIP' ;;
		'image --slot') kind='BYTES' ;;
		'flash --at') kind='PARTITION|ADDRESS' ;;
		'flash --baud') kind='SPEED' ;;
		'flash --board') kind='BOARD' ;;
		'flash --port') kind='PORT' ;;
		'nvs --delete') kind='NAMESPACE/KEY' ;;
		'nvs --ota') kind='URL' ;;
		'nvs --out') kind='FILE' ;;
		'nvs --set') kind='NAMESPACE/KEY=VALUE' ;;
		'nvs --size') kind='BYTES' ;;
		'provision --ap') kind='NAME' ;;
		'provision --ota') kind='URL' ;;
		'provision --password-file') kind='FILE' ;;
		'provision --portal') kind='URL' ;;
		'provision --ssid') kind='NAME' ;;
		'publish --board') kind='BOARD' ;;
		'publish --hours') kind='FROM-TO' ;;
		'publish --percent') kind='PERCENT' ;;
		'publish --signature') kind='BASE64' ;;
		'publish --token-file') kind='FILE' ;;
		'publish --url') kind='URL' ;;
		'assets --name') kind='NAME' ;;
		'assets --robot') kind='ROBOT' ;;
		'assets --token-file') kind='FILE' ;;
		'assets --url') kind='URL' ;;
		'record --out') kind='FILE' ;;
		'record --token-file') kind='FILE' ;;
		'record --url') kind='URL' ;;
		'hooks install --key-file') kind='FILE' ;;
		'hooks install --settings') kind='FILE' ;;
		'hooks install --url') kind='URL' ;;
		'hooks remove --settings') kind='FILE' ;;
		'hooks send --agent') kind='NAME' ;;
		'hooks send --key-file') kind='FILE' ;;
		'hooks send --url') kind='URL' ;;
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
complete -o filenames -F _perch_tools perch-tools
