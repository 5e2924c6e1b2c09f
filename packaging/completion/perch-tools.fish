# fish completion for perch-tools; written by: perch-tools completion fish
function __perch_tools_robots
	timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p'
end
complete -c perch-tools -f
complete -c perch-tools -n __fish_use_subcommand -a robot -d 'is a robot made of software, that behaves as the firmware does'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l aec -d 'off|device|server: who cancels the echo; without it device in realtime mode, and else nobody' -x -a 'off device server'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l crash -d 'what --upgrade installs never gets as far as a check-in'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l event -d 'NAME=JSON to send when the channel opens; repeatable' -x
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l firmware -d '2.1|2.2.4|2.4|2.5|dotty: as which it behaves' -x -a '2.1 2.2.4 2.4 2.5 dotty'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l flash -d 'JSON FILE that stands for the robot'\''s flash; without it nothing is kept' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l framing -d 'binary framing 1|2|3, whatever the bootstrap says' -x -a '1 2 3'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l mac -d 'the robot'\''s MAC address' -x
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l mic -d 'WAV FILE that the microphone hears, one turn' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l mode -d 'auto|manual|realtime; without it auto, or realtime where --aec is not off' -x -a 'auto manual realtime'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l ota -d 'URL of the appliance'\''s bootstrap; without it the appliance is found by browsing' -x
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l picture -d 'show the talk as a picture, for people: faces, colours on a terminal, lines as wide as that; and play its sound where there is a device'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l robots -d 'N robots; their MACs count up from --mac' -x
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l say -d 'TEXT to say to the robot, where %d stands for the robot'\''s number, from 1; repeat it for more turns' -x
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l speaker -d 'WAV FILE to write what the speaker plays to' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l stay -d 'do not hang up when all is said'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l transcript -d 'FILE to write every frame to, as JSON lines, secrets blanked' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l upgrade -d 'install the firmware that is offered, and boot it'
complete -c perch-tools -n '__fish_seen_subcommand_from robot' -l wake -d 'TEXT that wakes the robot, in place of a tap' -x
complete -c perch-tools -n __fish_use_subcommand -a image -d 'says what a firmware image is, and whether a robot would run it'
complete -c perch-tools -n '__fish_seen_subcommand_from image' -l chip -d 'CHIP that it must be built for, such as esp32s3' -x
complete -c perch-tools -n '__fish_seen_subcommand_from image' -l json -d 'tell it as JSON'
complete -c perch-tools -n '__fish_seen_subcommand_from image' -l slot -d 'BYTES of the partition that it must fit into' -x
complete -c perch-tools -n '__fish_seen_subcommand_from image' -F
complete -c perch-tools -n __fish_use_subcommand -a flash -d 'writes firmware, assets or settings to a robot over its USB cable'
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l all -d 'allow writing the boot loader, the partition table and the settings; a merged image is all of that'
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l at -d 'PARTITION|ADDRESS to write to, as in ota_0; without it, where a file of its kind belongs' -x
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l baud -d 'SPEED for boards with a USB bridge' -x
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l board -d 'BOARD that the firmware was built for: say so where the robot has that of another project' -x
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l boot -d 'have the robot start what is written, whichever slot it starts now'
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l dry-run -d 'only say what would be written, and where'
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l port -d 'PORT that the robot is at, as in /dev/ttyACM0; without it, the only one that there is' -x
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -l save -d 'read the partition of --at into FILE, and write nothing to the robot'
complete -c perch-tools -n '__fish_seen_subcommand_from flash' -F
complete -c perch-tools -n __fish_use_subcommand -a nvs -d 'reads and changes the settings in a robot'\''s NVS partition; without --set, --ota or --delete it only reads'
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l delete -d 'NAMESPACE/KEY to remove; repeatable' -x
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l drop-damaged -d 'write although damaged entries are lost by it'
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l json -d 'tell it as JSON'
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l new -d 'begin with an empty partition, and make the file'
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l ota -d 'URL of the appliance'\''s bootstrap, as in http://perch.local:8003/xiaozhi/ota/' -x
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l out -d 'FILE to write to, in place of the one that was read' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l set -d 'NAMESPACE/KEY=VALUE to store; KEY=TYPE:VALUE for a key the firmware is not known to have; repeatable' -x
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l show-secrets -d 'show passwords and tokens'
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -l size -d 'BYTES of a new partition' -x
complete -c perch-tools -n '__fish_seen_subcommand_from nvs' -F
complete -c perch-tools -n __fish_use_subcommand -a provision -d 'points a robot in configuration mode at an appliance'
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l ap -d 'NAME of that network, where several robots open one' -x
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l ota -d 'URL of the appliance'\''s bootstrap; without it, the appliance that is found by browsing' -x
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l password-file -d 'FILE that holds the password of that Wi-Fi' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l portal -d 'URL of the robot'\''s page' -x
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l ssid -d 'NAME of the Wi-Fi that the robot is to join; without it, those it knows' -x
complete -c perch-tools -n '__fish_seen_subcommand_from provision' -l wifi -d 'join the robot'\''s network Xiaozhi-XXXX with this machine'\''s Wi-Fi, and come back'
complete -c perch-tools -n __fish_use_subcommand -a publish -d 'puts a firmware image into an appliance'\''s catalogue'
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l auto -d 'offer it to robots by itself'
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l board -d 'BOARD that the image is for, as perch devices shows it; repeatable' -x
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l hours -d 'FROM-TO in which it is offered, as in 02:00-05:00, with --auto' -x
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l percent -d 'PERCENT of the robots, with --auto' -x
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l signature -d 'ed25519 signature of the image'\''s SHA-256, in BASE64, where the appliance asks for one' -x
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -l url -d 'URL of the appliance' -x
complete -c perch-tools -n '__fish_seen_subcommand_from publish' -F
complete -c perch-tools -n __fish_use_subcommand -a assets -d 'has robots fetch fonts, wake words and faces from an appliance'
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l check -d 'only read the file and say what it holds'
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l name -d 'NAME that it is kept under; without it, the file'\''s own' -x
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l reboot -d 'restart that robot, so that it fetches it'
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l robot -d 'ROBOT to point at it, whose channel must be open' -x -a '(__perch_tools_robots)'
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -l url -d 'URL of the appliance' -x
complete -c perch-tools -n '__fish_seen_subcommand_from assets' -F
complete -c perch-tools -n __fish_use_subcommand -a record -d 'writes a robot'\''s session as a transcript, secrets blanked'
complete -c perch-tools -n '__fish_seen_subcommand_from record' -l out -d 'FILE to write to, in place of the terminal' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from record' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from record' -l url -d 'URL of the appliance' -x
complete -c perch-tools -n '__fish_seen_subcommand_from record' -a '(__perch_tools_robots)'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and not __fish_seen_subcommand_from install remove send' -a install -d 'has a coding agent'\''s hooks drive the appliance: hooks install claude'
complete -c perch-tools -n __fish_use_subcommand -a hooks -d 'has a coding agent'\''s hooks drive the appliance: hooks install claude'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from install' -l key-file -d 'FILE that holds the skins'\'' key (skins.key)' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from install' -l settings -d 'FILE to write to; the user'\''s own settings of the agent by default' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from install' -l url -d 'URL of the appliance' -x
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from install' -l write -d 'merge it into that file, and keep a backup'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from install' -a 'claude codex'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and not __fish_seen_subcommand_from install remove send' -a remove -d 'takes these hooks out of a coding agent'\''s settings: hooks remove claude'
complete -c perch-tools -n __fish_use_subcommand -a hooks -d 'takes these hooks out of a coding agent'\''s settings: hooks remove claude'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from remove' -l settings -d 'FILE to take them out of; the user'\''s own settings of the agent by default' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from remove' -a 'claude codex'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and not __fish_seen_subcommand_from install remove send' -a send -d 'is what the hooks run: it passes on what the agent tells'
complete -c perch-tools -n __fish_use_subcommand -a hooks -d 'is what the hooks run: it passes on what the agent tells'
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from send' -l agent -d 'NAME of the agent that tells; Claude Code by default' -x
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from send' -l key-file -d 'FILE that holds the skins'\'' key (skins.key)' -r -F
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from send' -l url -d 'URL of the appliance' -x
complete -c perch-tools -n '__fish_seen_subcommand_from hooks; and __fish_seen_subcommand_from send' -a 'state permission'
complete -c perch-tools -n __fish_use_subcommand -a completion -d 'writes what has a shell complete these commands: bash, zsh, fish'
complete -c perch-tools -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
