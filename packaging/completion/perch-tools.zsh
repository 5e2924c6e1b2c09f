#compdef perch-tools
# zsh completion for perch-tools; written by: perch-tools completion zsh
_perch-tools_robots() { compadd -- $(timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p') }
_perch-tools() {
	if (( CURRENT == 2 )); then
		local -a commands=(
			'robot:is a robot made of software, that behaves as the firmware does'
			'image:says what a firmware image is, and whether a robot would run it'
			'flash:writes firmware, assets or settings to a robot over its USB cable'
			'nvs:reads and changes the settings in a robot'\''s NVS partition; without --set, --ota or --delete it only reads'
			'provision:points a robot in configuration mode at an appliance'
			'publish:puts a firmware image into an appliance'\''s catalogue'
			'assets:has robots fetch fonts, wake words and faces from an appliance'
			'record:writes a robot'\''s session as a transcript, secrets blanked'
			'hooks:has a coding agent'\''s hooks drive the appliance: hooks install claude'
			'completion:writes what has a shell complete these commands: bash, zsh, fish'
		)
		_describe command commands
		return
	fi
	shift words
	(( CURRENT-- ))
	if [[ $words[1] == hooks ]]; then
		if (( CURRENT == 2 )); then
			compadd -- install remove send
			return
		fi
		words[2]="$words[1] $words[2]"
		shift words
		(( CURRENT-- ))
	fi
	case $words[1] in
	'robot') _arguments \
		'*--aec=[off|device|server\: who cancels the echo; without it device in realtime mode, and else nobody]:off|device|server:(off device server)' \
		'*--crash[what --upgrade installs never gets as far as a check-in]' \
		'*--event=[NAME=JSON to send when the channel opens; repeatable]:NAME=JSON: ' \
		'*--firmware=[2.1|2.2.4|2.4|2.5|dotty\: as which it behaves]:2.1|2.2.4|2.4|2.5|dotty:(2.1 2.2.4 2.4 2.5 dotty)' \
		'*--flash=[JSON FILE that stands for the robot'\''s flash; without it nothing is kept]:FILE:_files' \
		'*--framing=[binary framing 1|2|3, whatever the bootstrap says]:1|2|3:(1 2 3)' \
		'*--mac=[the robot'\''s MAC address]:MAC: ' \
		'*--mic=[WAV FILE that the microphone hears, one turn]:FILE:_files' \
		'*--mode=[auto|manual|realtime; without it auto, or realtime where --aec is not off]:auto|manual|realtime:(auto manual realtime)' \
		'*--ota=[URL of the appliance'\''s bootstrap; without it the appliance is found by browsing]:URL: ' \
		'*--picture[show the talk as a picture, for people\: faces, colours on a terminal, lines as wide as that; and play its sound where there is a device]' \
		'*--robots=[N robots; their MACs count up from --mac]:N: ' \
		'*--say=[TEXT to say to the robot, where %d stands for the robot'\''s number, from 1; repeat it for more turns]:TEXT: ' \
		'*--speaker=[WAV FILE to write what the speaker plays to]:FILE:_files' \
		'*--stay[do not hang up when all is said]' \
		'*--transcript=[FILE to write every frame to, as JSON lines, secrets blanked]:FILE:_files' \
		'*--upgrade[install the firmware that is offered, and boot it]' \
		'*--wake=[TEXT that wakes the robot, in place of a tap]:TEXT: ' ;;
	'image') _arguments \
		'*--chip=[CHIP that it must be built for, such as esp32s3]:CHIP: ' \
		'*--json[tell it as JSON]' \
		'*--slot=[BYTES of the partition that it must fit into]:BYTES: ' \
		'1:FILE.bin:_files' ;;
	'flash') _arguments \
		'*--all[allow writing the boot loader, the partition table and the settings; a merged image is all of that]' \
		'*--at=[PARTITION|ADDRESS to write to, as in ota_0; without it, where a file of its kind belongs]:PARTITION|ADDRESS: ' \
		'*--baud=[SPEED for boards with a USB bridge]:SPEED: ' \
		'*--board=[BOARD that the firmware was built for\: say so where the robot has that of another project]:BOARD: ' \
		'*--boot[have the robot start what is written, whichever slot it starts now]' \
		'*--dry-run[only say what would be written, and where]' \
		'*--port=[PORT that the robot is at, as in /dev/ttyACM0; without it, the only one that there is]:PORT: ' \
		'*--save[read the partition of --at into FILE, and write nothing to the robot]' \
		'1:FILE.bin:_files' ;;
	'nvs') _arguments \
		'*--delete=[NAMESPACE/KEY to remove; repeatable]:NAMESPACE/KEY: ' \
		'*--drop-damaged[write although damaged entries are lost by it]' \
		'*--json[tell it as JSON]' \
		'*--new[begin with an empty partition, and make the file]' \
		'*--ota=[URL of the appliance'\''s bootstrap, as in http\://perch.local\:8003/xiaozhi/ota/]:URL: ' \
		'*--out=[FILE to write to, in place of the one that was read]:FILE:_files' \
		'*--set=[NAMESPACE/KEY=VALUE to store; KEY=TYPE\:VALUE for a key the firmware is not known to have; repeatable]:NAMESPACE/KEY=VALUE: ' \
		'*--show-secrets[show passwords and tokens]' \
		'*--size=[BYTES of a new partition]:BYTES: ' \
		'1:FILE:_files' ;;
	'provision') _arguments \
		'*--ap=[NAME of that network, where several robots open one]:NAME: ' \
		'*--ota=[URL of the appliance'\''s bootstrap; without it, the appliance that is found by browsing]:URL: ' \
		'*--password-file=[FILE that holds the password of that Wi-Fi]:FILE:_files' \
		'*--portal=[URL of the robot'\''s page]:URL: ' \
		'*--ssid=[NAME of the Wi-Fi that the robot is to join; without it, those it knows]:NAME: ' \
		'*--wifi[join the robot'\''s network Xiaozhi-XXXX with this machine'\''s Wi-Fi, and come back]' ;;
	'publish') _arguments \
		'*--auto[offer it to robots by itself]' \
		'*--board=[BOARD that the image is for, as perch devices shows it; repeatable]:BOARD: ' \
		'*--hours=[FROM-TO in which it is offered, as in 02\:00-05\:00, with --auto]:FROM-TO: ' \
		'*--percent=[PERCENT of the robots, with --auto]:PERCENT: ' \
		'*--signature=[ed25519 signature of the image'\''s SHA-256, in BASE64, where the appliance asks for one]:BASE64: ' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:FILE.bin:_files' ;;
	'assets') _arguments \
		'*--check[only read the file and say what it holds]' \
		'*--name=[NAME that it is kept under; without it, the file'\''s own]:NAME: ' \
		'*--reboot[restart that robot, so that it fetches it]' \
		'*--robot=[ROBOT to point at it, whose channel must be open]:ROBOT:_perch-tools_robots' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:FILE.bin:_files' ;;
	'record') _arguments \
		'*--out=[FILE to write to, in place of the terminal]:FILE:_files' \
		'*--token-file=[FILE that holds the admin token]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:ROBOT:_perch-tools_robots' ;;
	'hooks install') _arguments \
		'*--key-file=[FILE that holds the skins'\'' key (skins.key)]:FILE:_files' \
		'*--settings=[FILE to write to; the user'\''s own settings of the agent by default]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'*--write[merge it into that file, and keep a backup]' \
		'1:claude|codex:(claude codex)' ;;
	'hooks remove') _arguments \
		'*--settings=[FILE to take them out of; the user'\''s own settings of the agent by default]:FILE:_files' \
		'1:claude|codex:(claude codex)' ;;
	'hooks send') _arguments \
		'*--agent=[NAME of the agent that tells; Claude Code by default]:NAME: ' \
		'*--key-file=[FILE that holds the skins'\'' key (skins.key)]:FILE:_files' \
		'*--url=[URL of the appliance]:URL: ' \
		'1:state|permission:(state permission)' ;;
	'completion') _arguments \
		'1:bash|zsh|fish:(bash zsh fish)' ;;
	esac
}
if [[ $funcstack[1] == _perch-tools ]]; then
	_perch-tools "$@"
else
	compdef _perch-tools perch-tools
fi
