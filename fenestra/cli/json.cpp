// The JSON of the commands, compiled once for all of them.
#include <fenestra/cli/command.hpp>

#include <nlohmann/json.hpp>

template class nlohmann::basic_json<nlohmann::ordered_map>;
