package idlememory

const PopulateRead = populateRead

var Advise = advise
