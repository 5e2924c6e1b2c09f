#compdef perch
# zsh completion for perch; written by: perch completion zsh
_perch_robots() { compadd -- $(timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p') }
_perch() {
	if (( CURRENT == 2 )); then
		local -a commands=(
			'serve:runs the appliance'
			'check-config:says every fault of a configuration'
			'doctor:says what works and, for what does not, cause and cure'
			'devices:lists the robots'
			'say:has a robot speak'
			'notify:has people told something, at once or when a robot next connects'
			'adopt:makes a robot yours, also one that waits'
			'token:tells the address and the token of a robot that is adopted, for a client that has fields for them'
			'forget:forgets a robot, or all that nobody has adopted'
			'robot:shows what is known of a robot'
			'backup:writes what the appliance knows into one file, while it runs; - is standard output'
			'restore:checks a backup and puts it in the place of what the appliance knows, at its next start'
			'completion:writes what has a shell complete these commands'
			'version:says which program this is'
		)
		_describe command commands
		return
	fi
	shift words
	(( CURRENT-- ))
	if [[ $words[1] == robot ]]; then
		if (( CURRENT == 2 )); then
			compadd -- show rename set
			return
		fi
		words[2]="$words[1] $words[2]"
		shift words
		(( CURRENT-- ))
	fi
	case $words[1] in
	'serve') _arguments \
		'*--config=[FILE of the configuration]:FILE:_files' \
		'*--data=[DIR of its data]:DIR:_files -/' \
		'*--listen=[ADDRESS for robots and everybody; repeatable, replaces the configuration'\''s]:ADDRESS: ' \
		'*--local=[loopback ADDRESS for programs of this machine; repeatable, replaces the configuration'\''s]:ADDRESS: ' \
		'*--log-level=[debug|info|warn|error\: what is worth a line]:debug|info|warn|error:(debug info warn error)' \
		'*--new-database[start with an empty database where there was one and it is missing; every robot and all that was remembered is forgotten]' ;;
	'check-config') _arguments \
		'1:FILE:_files' ;;
	'doctor') _arguments \
		'*--config=[FILE of the configuration]:FILE:_files' \
		'*--data=[DIR of its data]:DIR:_files -/' \
		'*--show-secrets[show the generated passwords]' ;;
	'devices') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' ;;
	'say') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch_robots' \
		'2:TEXT: ' ;;
	'notify') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--expires=[TIME for which it is worth telling, 10m]:TIME: ' \
		'*--robot=[ROBOT that tells it; without it, all do]:ROBOT:_perch_robots' \
		'*--silent[show it, and do not say it]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--urgency=[low|normal|high\: high interrupts, low waits for a pause]:low|normal|high:(low normal high)' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:TEXT: ' ;;
	'adopt') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--replace[let in whoever waits under ROBOT'\''s address in its place, where it shows no code. Anybody can claim an address\: until you adopt it once more it may talk, and nothing else]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT|CODE:_perch_robots' ;;
	'token') _arguments \
		'*--client=[ID that the client sends as Client-Id; without it the one is told that it has to send]:ID: ' \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--json[print it as JSON]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch_robots' ;;
	'forget') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--strangers[forget every robot that nobody has adopted, instead of one]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT|--strangers:_perch_robots' ;;
	'robot show') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch_robots' ;;
	'robot rename') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch_robots' \
		'2:NAME: ' ;;
	'robot set') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch_robots' \
		'2:KEY=VALUE: ' ;;
	'backup') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--force[replace FILE where it is there]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:FILE:_files' ;;
	'restore') _arguments \
		'*--data=[DIR of the data of the appliance on this machine]:DIR:_files -/' \
		'*--restart[have the appliance restart at once to apply it]' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:FILE:_files' ;;
	'completion') _arguments \
		'1:bash|zsh|fish:(bash zsh fish)' ;;
	'version') _arguments ;;
	esac
}
if [[ $funcstack[1] == _perch ]]; then
	_perch "$@"
else
	compdef _perch perch
fi
