# fish completion for perch; written by: perch completion fish
function __perch_robots
	timeout 2 perch devices 2>/dev/null | sed -n 's/^\([0-9a-f]\{12\}\) .*/\1/p; s/^ *called \([^ ]*\)$/\1/p'
end
complete -c perch -f
complete -c perch -n __fish_use_subcommand -a serve -d 'runs the appliance'
complete -c perch -n '__fish_seen_subcommand_from serve' -l config -d 'FILE of the configuration' -r -F
complete -c perch -n '__fish_seen_subcommand_from serve' -l data -d 'DIR of its data' -r -F
complete -c perch -n '__fish_seen_subcommand_from serve' -l listen -d 'ADDRESS for robots and everybody; repeatable, replaces the configuration'\''s' -x
complete -c perch -n '__fish_seen_subcommand_from serve' -l local -d 'loopback ADDRESS for programs of this machine; repeatable, replaces the configuration'\''s' -x
complete -c perch -n '__fish_seen_subcommand_from serve' -l log-level -d 'debug|info|warn|error: what is worth a line' -x -a 'debug info warn error'
complete -c perch -n '__fish_seen_subcommand_from serve' -l new-database -d 'start with an empty database where there was one and it is missing; every robot and all that was remembered is forgotten'
complete -c perch -n __fish_use_subcommand -a check-config -d 'says every fault of a configuration'
complete -c perch -n '__fish_seen_subcommand_from check-config' -F
complete -c perch -n __fish_use_subcommand -a doctor -d 'says what works and, for what does not, cause and cure'
complete -c perch -n '__fish_seen_subcommand_from doctor' -l config -d 'FILE of the configuration' -r -F
complete -c perch -n '__fish_seen_subcommand_from doctor' -l data -d 'DIR of its data' -r -F
complete -c perch -n '__fish_seen_subcommand_from doctor' -l show-secrets -d 'show the generated passwords'
complete -c perch -n __fish_use_subcommand -a devices -d 'lists the robots'
complete -c perch -n '__fish_seen_subcommand_from devices' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from devices' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from devices' -l url -d 'URL of the appliance' -x
complete -c perch -n __fish_use_subcommand -a say -d 'has a robot speak'
complete -c perch -n '__fish_seen_subcommand_from say' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from say' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from say' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from say' -a '(__perch_robots)'
complete -c perch -n __fish_use_subcommand -a notify -d 'has people told something, at once or when a robot next connects'
complete -c perch -n '__fish_seen_subcommand_from notify' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from notify' -l expires -d 'TIME for which it is worth telling, 10m' -x
complete -c perch -n '__fish_seen_subcommand_from notify' -l robot -d 'ROBOT that tells it; without it, all do' -x -a '(__perch_robots)'
complete -c perch -n '__fish_seen_subcommand_from notify' -l silent -d 'show it, and do not say it'
complete -c perch -n '__fish_seen_subcommand_from notify' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from notify' -l urgency -d 'low|normal|high: high interrupts, low waits for a pause' -x -a 'low normal high'
complete -c perch -n '__fish_seen_subcommand_from notify' -l url -d 'URL of the appliance' -x
complete -c perch -n __fish_use_subcommand -a adopt -d 'makes a robot yours, also one that waits'
complete -c perch -n '__fish_seen_subcommand_from adopt' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from adopt' -l replace -d 'let in whoever waits under ROBOT'\''s address in its place, where it shows no code. Anybody can claim an address: until you adopt it once more it may talk, and nothing else'
complete -c perch -n '__fish_seen_subcommand_from adopt' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from adopt' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from adopt' -a '(__perch_robots)'
complete -c perch -n __fish_use_subcommand -a token -d 'tells the address and the token of a robot that is adopted, for a client that has fields for them'
complete -c perch -n '__fish_seen_subcommand_from token' -l client -d 'ID that the client sends as Client-Id; without it the one is told that it has to send' -x
complete -c perch -n '__fish_seen_subcommand_from token' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from token' -l json -d 'print it as JSON'
complete -c perch -n '__fish_seen_subcommand_from token' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from token' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from token' -a '(__perch_robots)'
complete -c perch -n __fish_use_subcommand -a forget -d 'forgets a robot, or all that nobody has adopted'
complete -c perch -n '__fish_seen_subcommand_from forget' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from forget' -l strangers -d 'forget every robot that nobody has adopted, instead of one'
complete -c perch -n '__fish_seen_subcommand_from forget' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from forget' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from forget' -a '(__perch_robots)'
complete -c perch -n '__fish_seen_subcommand_from robot; and not __fish_seen_subcommand_from show rename set' -a show -d 'shows what is known of a robot'
complete -c perch -n __fish_use_subcommand -a robot -d 'shows what is known of a robot'
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from show' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from show' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from show' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from show' -a '(__perch_robots)'
complete -c perch -n '__fish_seen_subcommand_from robot; and not __fish_seen_subcommand_from show rename set' -a rename -d 'gives a robot the name by which every command knows it; an empty one takes it away'
complete -c perch -n __fish_use_subcommand -a robot -d 'gives a robot the name by which every command knows it; an empty one takes it away'
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from rename' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from rename' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from rename' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from rename' -a '(__perch_robots)'
complete -c perch -n '__fish_seen_subcommand_from robot; and not __fish_seen_subcommand_from show rename set' -a set -d 'sets a robot'\''s own name, persona, voice, brain or language; an empty value takes it away'
complete -c perch -n __fish_use_subcommand -a robot -d 'sets a robot'\''s own name, persona, voice, brain or language; an empty value takes it away'
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from set' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from set' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from set' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from robot; and __fish_seen_subcommand_from set' -a '(__perch_robots)'
complete -c perch -n __fish_use_subcommand -a backup -d 'writes what the appliance knows into one file, while it runs; - is standard output'
complete -c perch -n '__fish_seen_subcommand_from backup' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from backup' -l force -d 'replace FILE where it is there'
complete -c perch -n '__fish_seen_subcommand_from backup' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from backup' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from backup' -F
complete -c perch -n __fish_use_subcommand -a restore -d 'checks a backup and puts it in the place of what the appliance knows, at its next start'
complete -c perch -n '__fish_seen_subcommand_from restore' -l data -d 'DIR of the data of the appliance on this machine' -r -F
complete -c perch -n '__fish_seen_subcommand_from restore' -l restart -d 'have the appliance restart at once to apply it'
complete -c perch -n '__fish_seen_subcommand_from restore' -l token-file -d 'FILE that holds the admin token' -r -F
complete -c perch -n '__fish_seen_subcommand_from restore' -l url -d 'URL of the appliance' -x
complete -c perch -n '__fish_seen_subcommand_from restore' -F
complete -c perch -n __fish_use_subcommand -a completion -d 'writes what has a shell complete these commands'
complete -c perch -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c perch -n __fish_use_subcommand -a version -d 'says which program this is'
