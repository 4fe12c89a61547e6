// Ranks that are processes, started by mpirun or by whatever else starts MPI programs. MPI itself
// is in a plugin, `fenestra_mpi.so`, which is loaded here and nowhere else: without it everything
// but this works.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/ranks/communicator.hpp>

namespace fenestra::ranks {

/// How many processes were started together with this one, as far as the environment says: by the
/// launchers of Open MPI, MPICH and Slurm. 0: by none of them.
FENESTRA_API int launched_ranks();

/// All ranks of the job. The first call starts MPI, which ends with the process, if by then all
/// pointers to it are gone. A rank that lets go of the last one by an exception ends without MPI's
/// consent, whereupon the launcher ends the others.
///
/// The plugin is looked for in FENESTRA_MPI (a file), beside the library or program, in the folder
/// `fenestra` there, and where it is installed. Throws `bad_environment` where there is none, and
/// LostRank where MPI fails.
FENESTRA_API CommunicatorPtr mpi_communicator();

}  // namespace fenestra::ranks
